import { nestingLimit, readJson } from '../schema/nesting.ts'
import { isObject } from '../schema/object.ts'

/** What a notification holds: messages, or where they are. */
export interface BroadcastMessage {
  /** The `daemonId` of the sender. */
  readonly from: string
  readonly entries?: readonly (readonly [topic: string, data: unknown])[]
  /** The row of `core_broadcast` that has the entries. */
  readonly reference?: string
}

/**
 * Rises when an older build would misread a message; that build then ignores it. Fields and topics that a build does
 * not know it ignores as well.
 */
const VERSION = 1
/** PostgreSQL takes less than 8,000 bytes (https://www.postgresql.org/docs/15/sql-notify.html), which this is sealed. */
export const MAX_TEXT_BYTES = 5_960
/** What is around the data of a message. */
const ENVELOPE_LEVELS = 8

export function encodeEntry(topic: string, data: unknown): string {
  return JSON.stringify([topic, data])
}
/** `number` tells apart what would be equal. */
export function encodeEntries(from: string, entries: readonly string[], number?: number): string {
  return `{"v":${VERSION},"from":${JSON.stringify(from)},${number === undefined ? '' : `"n":${number},`}"m":[${entries.join(',')}]}`
}
export function encodeReference(from: string, reference: string): string {
  return JSON.stringify({ v: VERSION, from, ref: reference })
}

/** `undefined` for what is no message of this version. */
export function decodeMessage(payload: string): BroadcastMessage | undefined {
  let read: unknown
  try {
    read = readJson(payload, nestingLimit() + ENVELOPE_LEVELS)
  } catch {
    return undefined
  }
  if (!isObject(read) || read['v'] !== VERSION) return undefined
  const { from, ref, m: entries } = read
  if (typeof from !== 'string') return undefined
  if (typeof ref === 'string') return { from, reference: ref }
  return Array.isArray(entries) && entries.every(isEntry) ? { from, entries } : undefined
}
function isEntry(value: unknown): value is readonly [string, unknown] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string'
}
