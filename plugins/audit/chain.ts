import { hash } from 'node:crypto'

/** What the first entry has for its predecessor. */
export const ORIGIN = '0'.repeat(64)
/** Part of every preimage, so that a hash of another version or purpose can never match. */
export const TAG = 'svc-audit-1'

export interface Fields {
  readonly timestamp: string
  readonly event_type: string
  readonly agent_id: string
  readonly details: string
  /** Who made the request; empty when nobody did. A database of an older version has none. */
  readonly actor?: string
}
export interface Link extends Fields {
  readonly id: number
  readonly prev_hash: string
  readonly hash: string
}

/**
 * The fields, each with its length in bytes before it: no character can move from one field into the next without
 * changing the text.
 */
export function bodyOf({ timestamp, event_type, agent_id, details, actor = '' }: Fields): string {
  return [timestamp, event_type, agent_id, details].map(withLength).join('') + (actor === '' ? '' : withLength(actor))
}
const withLength = (field: string): string => `${Buffer.byteLength(field)}:${field}`
/** The same text that the INSERT of the store puts together in SQL. */
export function hashOf(id: number, prevHash: string, body: string): string {
  return hash('sha256', `${TAG}:${id}:${prevHash}:${body}`)
}

/** Walks a chain from its start. Feed it every entry in order; it remembers the first that does not fit. */
export class ChainWalk {
  #last = { id: 0, hash: ORIGIN }
  #firstInvalid: number | undefined
  get last(): { readonly id: number; readonly hash: string } {
    return this.#last
  }
  get firstInvalid(): number | undefined {
    return this.#firstInvalid
  }

  /** From the middle: what follows must link to this entry. */
  from(id: number, hash: string): this {
    this.#last = { id, hash }
    return this
  }

  add(link: Link): boolean {
    const expected = this.#last.id + 1
    const fits =
      link.id === expected &&
      link.prev_hash === this.#last.hash &&
      link.hash === hashOf(link.id, link.prev_hash, bodyOf(link))
    // A row that is missing is named by its own id, not by that of the row after it.
    if (!fits) this.#firstInvalid ??= Math.min(expected, link.id)
    this.#last = { id: link.id, hash: link.hash }
    return fits
  }
}
