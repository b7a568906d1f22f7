import type { Clock } from '../clock.ts'
import type { InboxRow } from './schema.ts'

const RETRY_MS = 5_000

export interface InboxLanesDeps {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly background: (work: () => Promise<void>) => void
  /** Lanes that are worked on side by side, beside those that may not wait. */
  readonly maxLanes: number
  /** Whether a lane waits for no other: `/stop` and approvals end what the others wait for. */
  readonly isUrgent: (lane: string) => boolean
  /** The oldest waiting row of a lane. */
  readonly head: (lane: string) => Promise<InboxRow | undefined>
  /** The row as it is from now on, unless somebody else has it. */
  readonly claim: (id: string) => Promise<InboxRow | undefined>
  /** Ends with the row in another state than `pending`, or with a later `next_at`. */
  readonly process: (row: InboxRow) => Promise<void>
}
interface Lane {
  readonly name: string
  /** There may be rows on disk that nobody has looked at. */
  hasMore: boolean
  /** The first row, which this process stored as its own. */
  first: InboxRow | undefined
  isRunning: boolean
  cancelTimer: (() => void) | undefined
}

/** Works on rows lane by lane: one row of a lane at a time, in the order they came. */
export class InboxLanes {
  readonly #deps: InboxLanesDeps
  readonly #lanes = new Map<string, Lane>()
  readonly #ready: Lane[] = []
  #running = 0
  constructor(deps: InboxLanesDeps) {
    this.#deps = deps
  }

  /** Stores a row and has it worked on. Whether it was new. `insert` stores the row as it is then. */
  async add(row: InboxRow, insert: () => Promise<boolean>): Promise<boolean> {
    if (this.#lanes.has(row.lane)) {
      const isNew = await insert()
      if (isNew) this.start(row.lane)
      return isNew
    }
    // Nobody waits before it, so it is claimed as it is stored.
    const lane = this.#open(row.lane)
    lane.isRunning = true
    row.state = 'processing'
    row.attempts = 1
    try {
      const isNew = await insert()
      if (isNew) lane.first = row
      return isNew
    } finally {
      lane.isRunning = false
      this.#enqueue(lane)
    }
  }
  /** There may be something to do in a lane. */
  start(name: string): void {
    const lane = this.#lanes.get(name) ?? this.#open(name)
    lane.hasMore = true
    this.#enqueue(lane)
  }

  #open(name: string): Lane {
    const lane: Lane = { name, hasMore: false, first: undefined, isRunning: false, cancelTimer: undefined }
    this.#lanes.set(name, lane)
    return lane
  }
  #enqueue(lane: Lane): void {
    if (lane.isRunning || this.#deps.signal.aborted) return
    lane.cancelTimer?.()
    lane.cancelTimer = undefined
    lane.isRunning = true
    if (this.#deps.isUrgent(lane.name)) return this.#deps.background(() => this.#run(lane))
    this.#ready.push(lane)
    this.#next()
  }
  #next(): void {
    while (this.#running < this.#deps.maxLanes) {
      const lane = this.#ready.shift()
      if (!lane) return
      this.#running++
      this.#deps.background(async () => {
        try {
          await this.#run(lane)
        } finally {
          this.#running--
          this.#next()
        }
      })
    }
  }

  async #run(lane: Lane): Promise<void> {
    let pauseMs: number | undefined
    try {
      pauseMs = await this.#workOff(lane)
    } catch (error) {
      pauseMs = RETRY_MS
      lane.hasMore = true
      if (!this.#deps.signal.aborted) throw error
    } finally {
      lane.isRunning = false
      if (pauseMs !== undefined) this.#pause(lane, pauseMs)
      else if (lane.hasMore) this.#enqueue(lane)
      else this.#lanes.delete(lane.name)
    }
  }
  /** The milliseconds until the next row is due, if there is one. */
  async #workOff(lane: Lane): Promise<number | undefined> {
    const { clock, signal, head, claim, process } = this.#deps
    const { first } = lane
    lane.first = undefined
    if (first) {
      await process(first)
      // It may have been postponed.
      lane.hasMore ||= first.state !== 'done'
    }
    while (!signal.aborted) {
      if (!lane.hasMore) return undefined
      lane.hasMore = false
      const next = await head(lane.name)
      if (!next) continue
      lane.hasMore = true
      const waitMs = next.next_at === null ? 0 : Date.parse(next.next_at) - clock.now()
      if (waitMs > 0) return waitMs
      // It may have been edited since it was read.
      const row = await claim(next.id)
      if (row) await process(row)
    }
    return undefined
  }
  #pause(lane: Lane, ms: number): void {
    if (this.#deps.signal.aborted) return
    lane.cancelTimer = this.#deps.clock.after(ms, () => {
      lane.cancelTimer = undefined
      lane.hasMore = true
      this.#enqueue(lane)
    })
  }
}
