import { Refusal } from 'svc/sdk'
import type { McpObject } from '../contract.ts'

/** One page of a list; the cursor is the number of what came before. */
export function pageOf<T>(
  name: string,
  all: readonly T[],
  { cursor }: McpObject,
  size: number,
): Readonly<Record<string, unknown>> {
  const start = cursor === undefined ? 0 : Number(cursor)
  if (!/^\d{1,9}$/.test(String(cursor ?? 0)) || start > all.length)
    throw new Refusal('invalid_request', 'cursor: this list has no such page; begin without a cursor')
  const end = start + size
  return { [name]: all.slice(start, end), ...(end < all.length && { nextCursor: String(end) }) }
}
