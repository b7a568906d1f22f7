import * as v from 'valibot'
import { MASK } from '../schema/secret.ts'
import { CoreSchema } from './schema.ts'
import { findChild, hideCredentials, isSecret, isTree } from './shape.ts'
import type { Schema } from './shape.ts'

/** A copy that may be printed: values of secret keys are `***`, and so are passwords inside URLs. */
export function redact(value: unknown, schema: Schema | undefined = CoreSchema): unknown {
  if (typeof value === 'string') return hideCredentials(value)
  if (Array.isArray(value)) return value.map((item) => redact(item, undefined))
  if (!isTree(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const child = schema && findChild(schema, key)
      const hidden = isSecret(child, key) && item !== undefined && item !== ''
      return [key, hidden ? MASK : redact(item, child)]
    }),
  )
}

/** The first key whose value is what `redact` shows in place of a secret, and not the secret. */
export function findMask(
  value: unknown,
  schema: Schema | undefined = CoreSchema,
  path: readonly string[] = [],
): readonly string[] | undefined {
  if (typeof value === 'string') return /^[a-z][a-z\d+.-]*:\/\/\*\*\*@/i.test(value) ? path : undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, item] of Object.entries(value)) {
    const child = Array.isArray(value) ? undefined : schema && findChild(schema, key)
    const masked = item === MASK || (Array.isArray(item) && item.includes(MASK))
    if (masked && isSecret(child, key)) return [...path, key]
    const found = findMask(item, Array.isArray(item) ? anything : (child ?? anything), [...path, key])
    if (found) return found
  }
  return undefined
}
/** Where no schema tells, the names do. */
const anything = v.unknown()

/** Every secret in a configuration, for the mask of the log. */
export function listSecrets(value: unknown, schema: Schema | undefined = CoreSchema): string[] {
  if (!isTree(value)) return []
  return Object.entries(value).flatMap(([key, item]) => {
    const child = schema && findChild(schema, key)
    if (typeof item === 'string') return isSecret(child, key) ? [item] : passwords(item)
    if (Array.isArray(item))
      return item.flatMap((one: unknown) =>
        typeof one === 'string' ? (isSecret(child, key) ? [one] : passwords(one)) : listSecrets(one, undefined),
      )
    return listSecrets(item, child)
  })
}
/** The variables that a configuration says a secret is in: what its keys that end in `_env` name. */
export function listVariables(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(listVariables)
  if (!isTree(value)) return []
  return Object.entries(value).flatMap(([key, item]) =>
    typeof item === 'string' ? (key.endsWith('_env') ? [item] : []) : listVariables(item),
  )
}
function passwords(text: string): string[] {
  const password = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@:]*:([^\s/?#@]+)@/i.exec(text)?.[1]
  return password === undefined ? [] : [password]
}
