import type { OutboxRow } from './schema.ts'
import type { TokenBucket } from './token-bucket.ts'

/** What waits for one chat or thread, in the order in which it is sent. */
export class ChatQueue {
  readonly key: string
  readonly rows: OutboxRow[] = []
  readonly bucket: TokenBucket | undefined
  isBusy = false
  #pause: { readonly row: string; readonly cancel: () => void } | undefined
  /** Attempts to send the first row that the platform answered with an error of its own, one after the other. */
  #failures = 0
  /** Those before which the platform took something else since the last one. */
  #rejections = 0
  #takenBefore = 0
  /** The second row is tried in place of the first. */
  #isSecondNext = false
  constructor(key: string, bucket: TokenBucket | undefined) {
    this.key = key
    this.bucket = bucket
  }

  /** Whether the row to try now has to wait for the end of a pause, whatever became of the wall clock since. */
  get isPaused(): boolean {
    return this.#pause !== undefined && this.#pause.row === describe(this.next)
  }
  /** `after` runs something once after a time. */
  pause(after: (run: () => void) => () => void, ended: () => void): void {
    this.endPause()
    const cancel = after(() => {
      this.#pause = undefined
      if (this.next) this.next.next_at = null
      ended()
    })
    this.#pause = { row: describe(this.next), cancel }
  }
  endPause(): void {
    this.#pause?.cancel()
    this.#pause = undefined
  }

  /** The row to try now. */
  get next(): OutboxRow | undefined {
    return this.#isSecondNext ? (this.rows[1] ?? this.rows[0]) : this.rows[0]
  }
  insert(row: OutboxRow): void {
    let at = this.rows.length
    // The first ones may be on their way already.
    const fixed = this.isBusy ? (this.#isSecondNext ? 2 : 1) : 0
    while (at > fixed && isBefore(row, this.rows[at - 1])) at--
    this.rows.splice(at, 0, row)
  }
  remove(row: OutboxRow): void {
    const at = this.rows.indexOf(row)
    if (at === -1) return
    this.rows.splice(at, 1)
    if (at === 0) this.#failures = this.#rejections = 0
    this.#isSecondNext = false
  }
  /** Takes every row out that is not on its way. */
  clear(): readonly OutboxRow[] {
    const kept = this.isBusy ? this.next : undefined
    const removed = this.rows.filter((row) => row !== kept)
    this.rows.splice(0, this.rows.length, ...(kept ? [kept] : []))
    this.#failures = this.#rejections = 0
    this.#isSecondNext = false
    return removed
  }

  /**
   * Records that the platform failed for a row. Whether the row itself is at fault: the platform took others meanwhile,
   * `maxRejections` times. `taken`: what it took of the account so far.
   */
  failed(row: OutboxRow, taken: number, maxRejections: number): boolean {
    if (row !== this.rows[0]) {
      this.#isSecondNext = false
      return false
    }
    if (this.#failures > 0 && taken > this.#takenBefore) this.#rejections++
    this.#failures++
    this.#takenBefore = taken
    // No other chat may tell whether the platform is away, so the row behind it is asked.
    this.#isSecondNext = this.#failures >= maxRejections && this.rows.length > 1
    return this.#rejections >= maxRejections
  }
  /** The row before the one that the platform took although it failed for that one so often. */
  overtakenBy(row: OutboxRow): OutboxRow | undefined {
    const [first] = this.rows
    return row === first ? undefined : first
  }
  get triesSecond(): boolean {
    return this.#isSecondNext
  }
}

const describe = (row: OutboxRow | undefined): string => (row ? `${row.id} ${row.next_at ?? ''}` : '')

function isBefore(row: OutboxRow, other: OutboxRow | undefined): boolean {
  if (!other) return false
  return row.seq === other.seq ? row.part < other.part : row.seq < other.seq
}
