import { hash } from 'node:crypto'

/** What the first entry has for its predecessor. */
export const ORIGIN = '0'.repeat(64)
/** Part of every preimage, so that a hash of another version or purpose can never match. */
export const TAG = 'svc-audit-1'
const WRITER_TAG = 'svc-audit-writer-1'

export interface Fields {
  readonly timestamp: string
  readonly event_type: string
  readonly agent_id: string
  readonly details: string
  /** Who made the request; empty when nobody did. A database of an older version has none. */
  readonly actor?: string
}
/** Where an entry of a shared database stands in the chain of the daemon that wrote it. */
export interface WriterLink {
  /** The home of the daemon and the number of its chain. */
  readonly writer: string
  /** From 1, without gaps. */
  readonly seq: number
  readonly writer_hash: string
}
export interface Link extends Fields {
  readonly id: number
  readonly prev_hash: string
  readonly hash: string
  /** These three are absent unless several daemons can share the database. */
  readonly writer?: string | null
  readonly seq?: number | null
  readonly writer_hash?: string | null
}

/**
 * The fields, each with its length in bytes before it: no character can move from one field into the next without
 * changing the text.
 */
export function bodyOf(fields: Fields & Partial<Pick<Link, 'writer' | 'seq' | 'writer_hash'>>): string {
  const { timestamp, event_type, agent_id, details, actor = '', writer, seq, writer_hash: writerHash } = fields
  const body = [timestamp, event_type, agent_id, details].map(withLength).join('')
  if (writer) return body + [actor, writer, String(seq), writerHash ?? ''].map(withLength).join('')
  return body + (actor === '' ? '' : withLength(actor))
}
const withLength = (field: string): string => `${Buffer.byteLength(field)}:${field}`
/** The same text that the INSERT of the store puts together in SQL. */
export function hashOf(id: number, prevHash: string, body: string): string {
  return hash('sha256', `${TAG}:${id}:${prevHash}:${body}`)
}
/** What the hash of a writer's entry begins with, before its place in the chain. */
export const writerPrefix = (writer: string): string => `${WRITER_TAG}:${writer}`
export const digestOf = ({ timestamp, event_type, agent_id, details, actor = '' }: Fields): string =>
  hash('sha256', bodyOf({ timestamp, event_type, agent_id, details, actor }))
/** The same text that the INSERT of the writers' store puts together in SQL. */
export function writerHashOf(
  { writer, seq }: Pick<WriterLink, 'writer' | 'seq'>,
  prev: string,
  digest: string,
): string {
  return hash('sha256', `${writerPrefix(writer)}:${seq}:${prev}:${digest}`)
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
