import type { OpenConnection } from '../connections/connections.ts'
import { ChatQueue } from './chat-queue.ts'
import type { Attempt, RowSenderDeps } from './row-sender.ts'
import { RowSender } from './row-sender.ts'
import { backOffMs } from './retry.ts'
import type { OutboxRow } from './schema.ts'
import { SendCircuit } from './send-circuit.ts'
import { TokenBucket } from './token-bucket.ts'

/** Rows of one account in memory; the rest stays on disk until there is room. */
const MAX_LOADED = 5_000
const MAX_IDLE_CHATS = 1_000
/** What is kept of a pause that an earlier process began: its clock, or this one, may have been wrong. */
const MAX_KEPT_PAUSE_MS = 3_600_000

export interface AccountSenderDeps extends RowSenderDeps {
  /** Messages to different chats that are sent side by side. */
  readonly maxConcurrent: number
  /** Attempts that fail for one message while the platform takes others. */
  readonly maxRejections: number
  /** Chats that fail without a success in between before the account pauses as a whole. */
  readonly maxFailedChats: number
  readonly connection: () => OpenConnection | undefined
  /** Undelivered rows, oldest first. */
  readonly load: (limit: number) => Promise<readonly OutboxRow[]>
  /** Runs work that unloading waits for. */
  readonly background: (work: () => Promise<void>) => void
}

/** Sends the rows of one account: in order to each chat, to several chats side by side. */
export class AccountSender {
  readonly #deps: AccountSenderDeps
  readonly #rowSender: RowSender
  readonly #circuit: SendCircuit
  readonly #chats = new Map<string, ChatQueue>()
  readonly #known = new Set<string>()
  /** Chats with work that wait for a free place. */
  readonly #ready: ChatQueue[] = []
  #overall: TokenBucket | undefined
  #running = 0
  /** What the platform took so far. */
  #taken = 0
  /** The connection for which the rows were read. */
  #connection: OpenConnection | undefined
  #isLoaded = false
  /** There are rows on disk that are not in memory. */
  #hasMore = false
  #loading: Promise<void> | undefined
  /** Rows that were added while older ones are read: they must not overtake them. */
  #added: OutboxRow[] | undefined
  /** Rows that were settled while rows are read, which may still hold them. */
  readonly #settled = new Set<string>()
  constructor(deps: AccountSenderDeps) {
    const { clock, random, backOff, maxFailedChats } = deps
    this.#deps = deps
    this.#rowSender = new RowSender(deps)
    this.#circuit = new SendCircuit({ clock, random, backOff, maxFailedChats, reopened: () => this.#next() })
  }

  /** A row that is on disk now. */
  add(row: OutboxRow): void {
    if (this.#added) {
      this.#added.push(row)
      return
    }
    if (!this.#isLoaded) return this.wake()
    if (this.#hasMore || this.#known.size >= MAX_LOADED) {
      this.#hasMore = true
      return
    }
    this.#insert(row)
  }

  /** Goes on with what is due, if the account is connected. */
  wake(): void {
    const open = this.#deps.connection()
    if (this.#deps.signal.aborted || !open) return
    if (open !== this.#connection) this.#forget(open)
    if (!this.#isLoaded || this.#hasMore) return this.refresh()
    for (const chat of this.#chats.values()) this.#start(chat)
  }
  /** Reads what others, such as another daemon on the database, have added. */
  refresh(): void {
    if (this.#deps.signal.aborted || !this.#deps.connection() || this.#loading) return
    this.#loading = this.#load().finally(() => {
      this.#loading = undefined
    })
    this.#deps.background(() => this.#loading ?? Promise.resolve())
  }
  /** Another daemon may have been connected meanwhile, and have sent what is in memory here. */
  #forget(open: OpenConnection): void {
    this.#connection = open
    this.#isLoaded = false
    for (const chat of this.#chats.values()) {
      chat.endPause()
      for (const { id } of chat.clear()) this.#known.delete(id)
    }
  }

  async #load(): Promise<void> {
    const added: OutboxRow[] = []
    this.#added = added
    let rows: readonly OutboxRow[]
    try {
      rows = await this.#deps.load(MAX_LOADED)
    } finally {
      this.#added = undefined
    }
    this.#isLoaded = true
    this.#hasMore = rows.length === MAX_LOADED
    // With more on disk, what was added meanwhile comes after that.
    for (const row of this.#hasMore ? rows : [...rows, ...added]) {
      if (this.#known.has(row.id) || this.#settled.has(row.id)) continue
      // An attempt that this process did not make: its outcome is unknown.
      if (row.state === 'sending') row.uncertain++
      this.#insert(row)
    }
    this.#settled.clear()
    for (const chat of this.#chats.values()) this.#start(chat)
  }

  #insert(row: OutboxRow): void {
    const key = `${row.chat}\u0000${row.thread}`
    let chat = this.#chats.get(key)
    if (!chat) {
      const perChat = this.#deps.connection()?.adapter.capabilities.rate.perChat
      chat = new ChatQueue(key, perChat && new TokenBucket(perChat))
      this.#sweep()
      this.#chats.set(key, chat)
    }
    this.#known.add(row.id)
    chat.insert(row)
    this.#start(chat)
  }
  #sweep(): void {
    if (this.#chats.size < MAX_IDLE_CHATS) return
    const now = this.#deps.clock.now()
    for (const [key, { rows, isBusy, bucket }] of this.#chats)
      if (rows.length === 0 && !isBusy && (bucket?.isFull(now) ?? true)) this.#chats.delete(key)
  }

  #start(chat: ChatQueue): void {
    if (chat.isBusy || chat.rows.length === 0 || chat.isPaused) return
    if (this.#deps.signal.aborted || !this.#deps.connection()) return
    chat.endPause()
    chat.isBusy = true
    this.#ready.push(chat)
    this.#next()
  }
  #next(): void {
    while (this.#running < this.#deps.maxConcurrent && this.#ready.length > 0) {
      const admission = this.#circuit.enter()
      if (!admission) return
      const chat = this.#ready.shift()
      if (!chat) return
      this.#running++
      this.#deps.background(() => this.#serve(chat, admission === 'probe'))
    }
  }
  async #serve(chat: ChatQueue, isProbe: boolean): Promise<void> {
    const { signal, random, backOff } = this.#deps
    let pauseMs = 0
    try {
      pauseMs = await this.#attempt(chat)
    } catch (error) {
      pauseMs = backOffMs(3, random(), backOff)
      if (!signal.aborted) throw error
    } finally {
      if (isProbe) this.#circuit.endProbe()
      this.#leave(chat, pauseMs)
      if (this.#hasMore && this.#known.size < MAX_LOADED / 2) this.wake()
    }
  }
  /** Gives up the place; the chat goes on after a pause. */
  #leave(chat: ChatQueue, pauseMs: number): void {
    this.#running--
    chat.isBusy = false
    if (pauseMs > 0 && !this.#deps.signal.aborted)
      chat.pause(
        (run) => this.#deps.clock.after(pauseMs, run),
        () => this.#start(chat),
      )
    else this.#start(chat)
    this.#next()
  }

  /** The milliseconds after which the chat may go on. */
  async #attempt(chat: ChatQueue): Promise<number> {
    const { clock, maxRejections } = this.#deps
    const row = chat.next
    const open = this.#deps.connection()
    if (!row || !open) return 0
    if (row.next_at !== null) {
      const pauseMs = Math.min(MAX_KEPT_PAUSE_MS, Date.parse(row.next_at) - clock.now())
      if (pauseMs > 0) return pauseMs
    }
    const attempt = await this.#rowSender.attempt(row, open, {
      waitMs: this.#reserve(chat, open),
      failed: (failure) => {
        if (!failure.isServerError) return false
        this.#circuit.failed(chat.key)
        return chat.failed(row, this.#taken, maxRejections)
      },
    })
    return this.#settle(chat, row, attempt)
  }
  async #settle(chat: ChatQueue, row: OutboxRow, attempt: Attempt): Promise<number> {
    // The pause of the first row holds for both.
    if (attempt.outcome === 'deferred') return chat.triesSecond || row !== chat.rows[0] ? 0 : attempt.pauseMs
    if (attempt.outcome === 'skipped') return 0
    const overtaken = chat.overtakenBy(row)
    if (attempt.outcome === 'sent') {
      this.#taken++
      this.#circuit.succeeded()
      if (overtaken) {
        await this.#rowSender.giveUp(overtaken, `${overtaken.error ?? 'It failed'}; the message after it was taken`)
        this.#remove(chat, overtaken)
      }
    }
    this.#remove(chat, row)
    return 0
  }

  #remove(chat: ChatQueue, row: OutboxRow): void {
    this.#known.delete(row.id)
    if (this.#loading) this.#settled.add(row.id)
    chat.remove(row)
  }
  #reserve({ bucket }: ChatQueue, { adapter }: OpenConnection): number {
    const now = this.#deps.clock.now()
    this.#overall ??= new TokenBucket(adapter.capabilities.rate.overall)
    return Math.max(this.#overall.reserve(now), bucket?.reserve(now) ?? 0)
  }
}
