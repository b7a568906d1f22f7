import type { MessageRow } from './schema.ts'

/** A row as it is written: it gets its place when it is there. */
export type Appended = Omit<MessageRow, 'turn_seq' | 'seq'>
/** A fingerprint of all messages ever appended to a session, from its row: their count, and a number unique to them. */
export interface Mark {
  readonly appended: number
  readonly fingerprint: number
}
interface Kept {
  readonly row: MessageRow
  readonly chars: number
}
interface Tail {
  mark: Mark
  kept: Kept[]
  /** Nothing is before the first one. */ complete: boolean
  chars: number
}

const MAX_SESSIONS = 500
/** Of all sessions together, and of one. */
const MAX_CHARS = 16_000_000
const MAX_CHARS_EACH = 600_000
/** The memory of a message beside its text, as measured: many short ones need as much as a few long ones. */
const ROW_CHARS = 600

/** Below 2^48, so that the next step of the fingerprint is exact in a double as well as in SQL. */
export const MODULUS = 281_474_976_710_597
/** What a message adds to the fingerprint. */
export function numberOf(id: string): number {
  let number = 0x811c9dc5
  for (let at = 0; at < id.length; at++) number = Math.imul(number ^ id.charCodeAt(at), 0x01000193)
  return number >>> 0
}

/**
 * The newest messages of the sessions that were used last, so that a turn need not read and parse its whole history
 * again. The database stays the truth: a copy adds a row after it is written, and any other change of the messages
 * drops the copy. When other processes write too, a copy is used only while its fingerprint matches the session's row.
 */
export class RecentMessageCache {
  readonly #recent = new Map<string, Tail>()
  #chars = 0

  has(sessionId: string): boolean {
    return this.#recent.has(sessionId)
  }

  /** The position of a turn, when one of its messages is known to be stored. */
  placeOf(sessionId: string, turnId: string): number | undefined {
    const tail = this.#recent.get(sessionId)
    return tail?.kept[endOf(tail, turnId) - 1]?.row.turn_seq
  }

  /** A message was appended: put into its place as the statement did. */
  add(sessionId: string, row: Appended, textChars: number, opens: boolean): void {
    const tail = this.#recent.get(sessionId)
    if (!tail) return
    const chars = textChars + ROW_CHARS
    const at = opens ? 0 : endOf(tail, row.turn_id)
    // The turn may lie before what is kept.
    if ((at === 0 && !opens && !tail.complete) || tail.chars + chars > MAX_CHARS_EACH) return this.drop(sessionId)
    const seq = tail.mark.appended + 1
    const turnSeq = at === 0 ? seq : (tail.kept[at - 1]?.row.turn_seq ?? seq)
    tail.kept.splice(at === 0 ? tail.kept.length : at, 0, { row: { ...row, turn_seq: turnSeq, seq }, chars })
    tail.mark = { appended: seq, fingerprint: (tail.mark.fingerprint * 31 + numberOf(row.id)) % MODULUS }
    tail.chars += chars
    this.#chars += chars
    this.#makeRoom()
  }

  /** Drops a copy that differs from the session's row. */
  check(sessionId: string, mark: Mark | undefined): void {
    const own = this.#recent.get(sessionId)?.mark
    if (own?.appended !== mark?.appended || own?.fingerprint !== mark?.fingerprint) this.drop(sessionId)
  }

  /** At most `limit` messages up to the end of a turn, newest first. `undefined`: read the database. */
  take(sessionId: string, turnId: string, limit: number): readonly MessageRow[] | undefined {
    const tail = this.#recent.get(sessionId)
    if (!tail) return undefined
    this.#recent.delete(sessionId)
    this.#recent.set(sessionId, tail)
    const end = endOf(tail, turnId)
    if (end === 0 || (end < limit && !tail.complete)) return undefined
    const rows: MessageRow[] = []
    for (let at = end - 1; at >= 0 && rows.length < limit; at--) {
      const kept = tail.kept[at]
      if (kept) rows.push(kept.row)
    }
    if (end > limit * 2) this.#shorten(tail, end - limit)
    return rows
  }

  /** Newest first, of the messages after one position and before a turn. `undefined`: read the database. */
  between(
    sessionId: string,
    after: Place,
    before: string | undefined,
    limit: number,
  ): readonly MessageRow[] | undefined {
    const tail = this.#recent.get(sessionId)
    const [first] = tail?.kept ?? []
    if (!tail || !first || (isAfter(first.row, after) && !tail.complete)) return undefined
    const end = before === undefined ? tail.kept.length : tail.kept.findIndex(({ row }) => row.turn_id === before)
    if (end < 0) return undefined
    const rows: MessageRow[] = []
    for (let at = end - 1; at >= 0 && rows.length < limit; at--) {
      const row = tail.kept[at]?.row
      if (!row || !isAfter(row, after)) break
      rows.push(row)
    }
    return rows
  }

  /** Newest first, up to the newest message of the session; `complete` when they are all there are. */
  put(sessionId: string, mark: Mark, rows: readonly MessageRow[], chars: readonly number[], complete: boolean): void {
    this.drop(sessionId)
    const kept = rows.map((row, at): Kept => ({ row, chars: (chars[at] ?? 0) + ROW_CHARS })).toReversed()
    const sum = kept.reduce((total, each) => total + each.chars, 0)
    if (sum > MAX_CHARS_EACH) return
    this.#recent.set(sessionId, { mark, kept, complete, chars: sum })
    this.#chars += sum
    this.#makeRoom()
  }

  drop(sessionId: string): void {
    const tail = this.#recent.get(sessionId)
    if (!tail) return
    this.#recent.delete(sessionId)
    this.#chars -= tail.chars
  }
  clear(): void {
    this.#recent.clear()
    this.#chars = 0
  }

  #makeRoom(): void {
    if (this.#chars <= MAX_CHARS && this.#recent.size <= MAX_SESSIONS) return
    for (const oldest of this.#recent.keys()) {
      this.drop(oldest)
      if (this.#chars <= MAX_CHARS && this.#recent.size <= MAX_SESSIONS) return
    }
  }
  #shorten(tail: Tail, count: number): void {
    for (const { chars } of tail.kept.splice(0, count)) {
      tail.chars -= chars
      this.#chars -= chars
    }
    tail.complete = false
  }
}

type Place = Pick<MessageRow, 'turn_seq' | 'seq'>
function isAfter(row: Place, place: Place): boolean {
  return row.turn_seq > place.turn_seq || (row.turn_seq === place.turn_seq && row.seq > place.seq)
}
/** Position after the last message of a turn; 0 when there is none. */
function endOf({ kept }: Tail, turnId: string): number {
  let end = kept.length
  while (end > 0 && kept[end - 1]?.row.turn_id !== turnId) end--
  return end
}
