import type * as v from 'valibot'
import { Refusal } from '../errors/error.ts'

/** What a schema may have, by its type. */
interface Parts {
  readonly type: string
  readonly entries?: Readonly<Record<string, Parts>>
  readonly item?: Parts
  readonly items?: readonly Parts[]
  readonly value?: Parts
  readonly wrapped?: Parts
  readonly options?: readonly unknown[]
}

/**
 * Throws `invalid_request` for a text with NUL, which PostgreSQL stores in no text, and which programs and file names
 * end at. What a schema takes as any JSON keeps it: that is stored as JSON, where it is written with an escape.
 */
export function refuseNul(schema: v.GenericSchema, value: unknown): void {
  const path = findNul(schema as unknown as Parts, value)
  if (path === undefined) return
  throw new Refusal('invalid_request', `${['body', ...path].join('.')}: must not hold the character NUL (U+0000)`)
}

/** Where it is; `undefined` when it is nowhere. */
function findNul(schema: Parts | undefined, value: unknown): readonly string[] | undefined {
  if (schema?.wrapped) return findNul(schema.wrapped, value)
  if (schema === undefined || isAnyJson(schema)) return undefined
  if (typeof value === 'string') return value.includes('\0') ? [] : undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const option of schema.options ?? []) {
    const found = findNul(option as Parts, value)
    if (found) return found
  }
  for (const [key, inner] of Object.entries(value)) {
    const found = findNul(partOf(schema, key), inner)
    if (found) return [key, ...found]
  }
  return undefined
}
/** Also one of several that a value may be. */
const isAnyJson = ({ type, options = [] }: Parts): boolean =>
  type === 'any' || type === 'unknown' || options.some((option) => isAnyJson(Object(option) as Parts))

function partOf({ entries, item, items, value }: Parts, key: string): Parts | undefined {
  if (entries) return entries[key]
  return item ?? items?.[Number(key)] ?? value
}
