import { isObject } from 'svc/sdk'

export type Fields = Readonly<Record<string, unknown>>
export const NO_FIELDS: Fields = {}

/** Values of a file of another system, which may be of any type. */
export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : NO_FIELDS)
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  return text === '' ? undefined : text
}
/** A list, one text, or the keys of a table. */
export function textsOf(value: unknown): readonly string[] {
  const list = Array.isArray(value) ? value : isObject(value) ? Object.keys(value) : [value]
  return list.flatMap((one) => textOf(one) ?? [])
}
export const flagOf = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)
export const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : typeof value === 'bigint' ? Number(value) : undefined
/** A time as text or in milliseconds since 1970 as ISO 8601 UTC. */
export function timeOf(value: unknown): string | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : numberOf(value)
  // What lies outside these years is no time of a conversation.
  return ms === undefined || !(ms > 0 && ms < 4_102_444_800_000) ? undefined : new Date(ms).toISOString()
}
/** What a table has under a key that somebody else chose, and nothing of what every object has. */
export const entryOf = <T>(table: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined
/** Of the system's file, one `NAME=value` a line. */
export function readVariables(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const line of text.split('\n')) {
    const at = line.indexOf('=')
    const name = line
      .slice(0, Math.max(0, at))
      .trim()
      .replace(/^export\s+/, '')
    if (/^[A-Za-z_]\w*$/.test(name)) found.set(name, withoutQuotes(line.slice(at + 1).trim()))
  }
  return found
}
function withoutQuotes(text: string): string {
  const first = text.charAt(0)
  return text.length > 1 && /["']/.test(first) && text.endsWith(first) ? text.slice(1, -1) : text
}
