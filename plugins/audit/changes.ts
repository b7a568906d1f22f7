import { namesSecret } from 'svc/internal'
import type { AuditChange } from './contract.ts'

/** Characters of one value that are kept, and keys that are named. */
const VALUE = 160
const MAX_KEYS = 40
const DEPTH = 6

/** The keys that differ, each with its value before and after; a key that is named like a secret shows neither. */
export function describeChange({ before, after }: AuditChange): string {
  const [old, now] = [flat(before), flat(after)]
  const keys = [...new Set([...old.keys(), ...now.keys()])].filter((key) => old.get(key) !== now.get(key))
  const named = keys.slice(0, MAX_KEYS).map((key) => {
    const show = (value: string | undefined): string =>
      value === undefined ? 'unset' : isSecret(key) ? '***' : shortened(value)
    return `${key} from ${show(old.get(key))} to ${show(now.get(key))}`
  })
  return [...named, ...(keys.length > MAX_KEYS ? [`and ${keys.length - MAX_KEYS} more`] : [])].join('; ')
}

const isSecret = (key: string): boolean => key.split('.').some((part) => namesSecret(part))
function shortened(value: string): string {
  return value.length <= VALUE ? value : `${value.slice(0, VALUE)}… (${value.length} characters)`
}

/** Values as JSON by their dotted keys; lists are values. */
function flat(value: Readonly<Record<string, unknown>>, prefix = '', depth = 0): Map<string, string> {
  const found = new Map<string, string>()
  for (const [name, inner] of Object.entries(value)) {
    if (inner === undefined || inner === null) continue
    const key = `${prefix}${name}`
    if (isTable(inner) && depth < DEPTH) for (const [at, text] of flat(inner, `${key}.`, depth + 1)) found.set(at, text)
    else found.set(key, JSON.stringify(inner) ?? 'null')
  }
  return found
}
const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
