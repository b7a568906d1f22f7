import type { Clock } from 'svc/internal'
import type { InboxRow } from './schema.ts'

const RETRY_MS = 5_000
/** Longest wait for a postponed row: the clock by which it was postponed may have been wrong. */
const MAX_PAUSE_MS = 600_000

export interface ConversationQueuesDeps {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly background: (work: () => Promise<void>) => void
  /** Queues that are worked on side by side, beside those that may not wait. */
  readonly maxRunning: number
  /** Whether a queue waits for no other: `/stop` and approvals end what the others wait for. */
  readonly isUrgent: (queue: string) => boolean
  /** The oldest waiting row of a queue. */
  readonly head: (queue: string) => Promise<InboxRow | undefined>
  /** The row as it is from now on, unless somebody else has it. */
  readonly claim: (id: string) => Promise<InboxRow | undefined>
  /**
   * Ends with the row in another state than `pending`, or with a later `next_at`. Whether what `head` returns now is
   * claimed.
   */
  readonly process: (row: InboxRow) => Promise<boolean>
}
interface ConversationQueue {
  readonly name: string
  /** There may be rows on disk that nobody has looked at. */
  hasMore: boolean
  /** The first row, which this process stored as its own. */
  first: InboxRow | undefined
  isRunning: boolean
  /** What it waits for, whatever becomes of the wall clock meanwhile. */
  pause: { readonly row: string; readonly cancel: () => void } | undefined
  /** The postponed row whose pause is over. */
  waited: string | undefined
}
interface Pause {
  readonly row: string
  readonly ms: number
}

/** Works on rows queue by queue: one row of a queue at a time, in the order they came. */
export class ConversationQueues {
  readonly #deps: ConversationQueuesDeps
  readonly #queues = new Map<string, ConversationQueue>()
  readonly #ready: ConversationQueue[] = []
  #running = 0
  constructor(deps: ConversationQueuesDeps) {
    this.#deps = deps
  }

  /**
   * Stores a row and has it worked on. Whether it was new. `insert` stores the row as it is then. A row is looked for
   * after a failure too, which may be one of the answer of the database, and when it is there already.
   */
  async add(row: InboxRow, insert: () => Promise<boolean>): Promise<boolean> {
    if (this.#queues.has(row.queue)) return await insert().finally(() => this.start(row.queue))
    // Nobody waits before it, so it is claimed as it is stored.
    const queue = this.#open(row.queue)
    queue.isRunning = true
    row.state = 'processing'
    row.attempts = 1
    try {
      const isNew = await insert()
      if (isNew) queue.first = row
      return isNew
    } finally {
      queue.hasMore ||= !queue.first
      queue.isRunning = false
      this.#enqueue(queue)
    }
  }
  /** There may be something to do in a queue. */
  start(name: string): void {
    const queue = this.#queues.get(name) ?? this.#open(name)
    queue.hasMore = true
    this.#enqueue(queue)
  }

  #open(name: string): ConversationQueue {
    const queue: ConversationQueue = {
      name,
      hasMore: false,
      first: undefined,
      isRunning: false,
      pause: undefined,
      waited: undefined,
    }
    this.#queues.set(name, queue)
    return queue
  }
  #enqueue(queue: ConversationQueue): void {
    if (queue.isRunning || this.#deps.signal.aborted) return
    queue.isRunning = true
    if (this.#deps.isUrgent(queue.name)) return this.#deps.background(() => this.#run(queue))
    this.#ready.push(queue)
    this.#next()
  }
  #next(): void {
    while (this.#running < this.#deps.maxRunning) {
      const queue = this.#ready.shift()
      if (!queue) return
      this.#running++
      this.#deps.background(async () => {
        try {
          await this.#run(queue)
        } finally {
          this.#running--
          this.#next()
        }
      })
    }
  }

  async #run(queue: ConversationQueue): Promise<void> {
    let pause: Pause | undefined
    try {
      pause = await this.#workOff(queue)
    } catch (error) {
      pause = { row: '', ms: RETRY_MS }
      queue.hasMore = false
      if (!this.#deps.signal.aborted) throw error
    } finally {
      queue.isRunning = false
      // What was started meanwhile does not wait.
      if (queue.hasMore) this.#enqueue(queue)
      else if (pause) this.#pause(queue, pause)
      else {
        queue.pause?.cancel()
        this.#queues.delete(queue.name)
      }
    }
  }
  /** How long the next row has to wait, if there is one. */
  async #workOff(queue: ConversationQueue): Promise<Pause | undefined> {
    const { clock, signal, head, claim, process } = this.#deps
    const { first } = queue
    queue.first = undefined
    let isClaimed = false
    if (first) {
      isClaimed = await process(first)
      // It may have been postponed.
      queue.hasMore ||= isClaimed || first.state !== 'done'
    }
    while (!signal.aborted) {
      if (!queue.hasMore) return undefined
      queue.hasMore = false
      const next = await head(queue.name)
      if (!next) continue
      const postponed = `${next.id} ${next.next_at ?? ''}`
      const waitMs = next.next_at === null ? 0 : Math.min(MAX_PAUSE_MS, Date.parse(next.next_at) - clock.now())
      if (waitMs > 0 && queue.waited !== postponed) {
        // It may be due since it was read.
        if (queue.hasMore) continue
        return { row: postponed, ms: waitMs }
      }
      queue.hasMore = true
      // One that is not claimed may have been edited since it was read.
      const row = isClaimed && next.state === 'processing' ? next : await claim(next.id)
      isClaimed = row !== undefined && (await process(row))
    }
    return undefined
  }
  #pause(queue: ConversationQueue, { row, ms }: Pause): void {
    if (this.#deps.signal.aborted || queue.pause?.row === row) return
    queue.pause?.cancel()
    const cancel = this.#deps.clock.after(ms, () => {
      queue.pause = undefined
      queue.waited = row
      queue.hasMore = true
      this.#enqueue(queue)
    })
    queue.pause = { row, cancel }
  }
}
