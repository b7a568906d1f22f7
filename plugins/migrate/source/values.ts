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
/** Of the system's file, one `NAME=value` a line. */
export function readVariables(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const [, name = '', value = ''] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (name !== '') found.set(name, value.replace(/^(["'])(.*)\1$/, '$2'))
  }
  return found
}
