import { namesSecret } from 'svc/internal'
import { isObject } from 'svc/sdk'
import { fieldsOf, textOf } from './values.ts'
import type { Fields } from './values.ts'

/** How those are called that people write; anything else may be the secret itself, in the wrong place. */
const VARIABLE = /^[A-Z][A-Z\d_]{0,99}$/
const REFERENCE = /^\$\{\w+\}$/
const HEADERS = /headers?$/i

/** Texts of a file that are in no report: what is below the name of a secret, and headers. */
export function secretsIn(value: unknown, isSecret = false): readonly string[] {
  if (typeof value === 'string') return isSecret && !REFERENCE.test(value) ? [value] : []
  if (Array.isArray(value)) return value.flatMap((one) => secretsIn(one, isSecret))
  const fields = fieldsOf(value)
  if (fields['source'] === 'env') return unlessVariable(fields['id'])
  return Object.entries(fields).flatMap(([name, one]) =>
    name.endsWith('_env') ? unlessVariable(one) : secretsIn(one, isSecret || HEADERS.test(name) || namesSecret(name)),
  )
}
function unlessVariable(value: unknown): readonly string[] {
  const text = textOf(value)
  return text === undefined || VARIABLE.test(text) ? [] : [text]
}

/** The same of variables. */
export function secretVariables(variables: ReadonlyMap<string, string>): readonly string[] {
  return [...variables].flatMap(([name, value]) => (namesSecret(name) ? [value] : []))
}

/** A table without its secrets; `removed`: their names. */
export function withoutSecrets(
  table: Fields,
  above = '',
): { readonly kept: Fields; readonly removed: readonly string[] } {
  const kept: Record<string, unknown> = {}
  const removed: string[] = []
  for (const [name, value] of Object.entries(table)) {
    if (secretsIn({ [name]: value }).length === 0) kept[name] = value
    else if (isObject(value) && !HEADERS.test(name) && !namesSecret(name)) {
      const inside = withoutSecrets(value, `${above}${name}.`)
      kept[name] = inside.kept
      removed.push(...inside.removed)
    } else removed.push(`${above}${name}`)
  }
  return { kept, removed }
}
