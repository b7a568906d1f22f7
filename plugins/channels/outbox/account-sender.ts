import { UpstreamFailure } from 'svc/sdk'
import type { SentMessage } from 'svc/channels'
import type { Clock } from '../clock.ts'
import { toIso } from '../clock.ts'
import type { OpenConnection } from '../connections/connections.ts'
import { classifyFailure, backOffMs } from './retry.ts'
import type { BackOff, SendFailure } from './retry.ts'
import type { OutboxRow } from './schema.ts'
import { TokenBucket } from './token-bucket.ts'

/** Rows of one account in memory; the rest stays on disk until there is room. */
const MAX_LOADED = 5_000
const MAX_IDLE_LANES = 1_000
/** A send without an answer for so long has an unknown outcome. */
const SEND_TIMEOUT_MS = 120_000
/** What the platform rejects with `auth` is tried again so often, should the account stay connected. */
const AUTH_PAUSE_MS = 60_000

export interface AccountSenderDeps {
  readonly clock: Clock
  readonly random: () => number
  readonly maxAttempts: number
  /** The age at which a message is given up that the platform could not take so far. */
  readonly giveUpMs: number
  readonly backOff: BackOff
  /** Messages to different chats that are sent side by side. */
  readonly maxConcurrent: number
  /** Aborts when the plugin unloads. */
  readonly signal: AbortSignal
  readonly connection: () => OpenConnection | undefined
  /** Undelivered rows, oldest first. */
  readonly load: (limit: number) => Promise<readonly OutboxRow[]>
  /** Durable before it settles: an attempt begins whose outcome a crash would hide. */
  readonly sending: (row: OutboxRow) => Promise<void>
  readonly sent: (row: OutboxRow, platformId: string) => Promise<void>
  readonly deferred: (row: OutboxRow) => Promise<void>
  readonly dead: (row: OutboxRow) => Promise<void>
  readonly transmit: (open: OpenConnection, row: OutboxRow) => Promise<SentMessage>
  /** Runs work that unloading waits for. */
  readonly background: (work: () => Promise<void>) => void
}
interface Lane {
  readonly rows: OutboxRow[]
  readonly bucket: TokenBucket | undefined
  isBusy: boolean
  cancelTimer: (() => void) | undefined
}

/** Sends the rows of one account: in order to each chat, to several chats side by side. */
export class AccountSender {
  readonly #deps: AccountSenderDeps
  readonly #lanes = new Map<string, Lane>()
  readonly #known = new Set<string>()
  /** Lanes with work that wait for a free place. */
  readonly #ready: Lane[] = []
  #overall: TokenBucket | undefined
  #running = 0
  #isLoaded = false
  /** There are rows on disk that are not in memory. */
  #hasMore = false
  #loading: Promise<void> | undefined
  /** Rows that were added while older ones are read: they must not overtake them. */
  #added: OutboxRow[] | undefined
  constructor(deps: AccountSenderDeps) {
    this.#deps = deps
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
    if (this.#deps.signal.aborted || !this.#deps.connection()) return
    if (this.#isLoaded && !this.#hasMore) {
      for (const lane of this.#lanes.values()) this.#start(lane)
      return
    }
    if (!this.#loading) this.#deps.background(() => this.#reload())
  }

  #reload(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
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
    for (const row of this.#hasMore ? rows : [...rows, ...added]) if (!this.#known.has(row.id)) this.#insert(row)
    for (const lane of this.#lanes.values()) this.#start(lane)
  }

  #insert(row: OutboxRow): void {
    const key = `${row.chat}\u0000${row.thread}`
    let lane = this.#lanes.get(key)
    if (!lane) {
      const perChat = this.#deps.connection()?.adapter.capabilities.rate.perChat
      lane = { rows: [], bucket: perChat && new TokenBucket(perChat), isBusy: false, cancelTimer: undefined }
      this.#sweep()
      this.#lanes.set(key, lane)
    }
    this.#known.add(row.id)
    let at = lane.rows.length
    // The head may be on its way already.
    while (at > (lane.isBusy ? 1 : 0) && isBefore(row, lane.rows[at - 1])) at--
    lane.rows.splice(at, 0, row)
    this.#start(lane)
  }
  #sweep(): void {
    if (this.#lanes.size < MAX_IDLE_LANES) return
    const now = this.#deps.clock.now()
    for (const [key, { rows, isBusy, bucket }] of this.#lanes)
      if (rows.length === 0 && !isBusy && (bucket?.isFull(now) ?? true)) this.#lanes.delete(key)
  }

  #start(lane: Lane): void {
    if (lane.isBusy || lane.rows.length === 0 || this.#deps.signal.aborted || !this.#deps.connection()) return
    lane.cancelTimer?.()
    lane.cancelTimer = undefined
    lane.isBusy = true
    this.#ready.push(lane)
    this.#next()
  }
  #next(): void {
    while (this.#running < this.#deps.maxConcurrent) {
      const lane = this.#ready.shift()
      if (!lane) return
      this.#running++
      this.#deps.background(() => this.#serve(lane))
    }
  }
  /** Gives up the place; the lane starts again after a time, if there is one. */
  #leave(lane: Lane, afterMs?: number): void {
    this.#running--
    lane.isBusy = false
    if (afterMs !== undefined)
      lane.cancelTimer = this.#deps.clock.after(afterMs, () => {
        lane.cancelTimer = undefined
        this.#start(lane)
      })
    this.#next()
  }

  async #serve(lane: Lane): Promise<void> {
    const { clock, signal } = this.#deps
    let pauseMs: number | undefined
    try {
      for (;;) {
        const row = lane.rows[0]
        const open = this.#deps.connection()
        if (!row || !open || signal.aborted) break
        pauseMs = row.next_at === null ? 0 : Date.parse(row.next_at) - clock.now()
        if (pauseMs <= 0) pauseMs = await this.#attempt(lane, row, open)
        if (pauseMs > 0) break
        pauseMs = undefined
      }
    } catch (error) {
      pauseMs = backOffMs(3, this.#deps.random(), this.#deps.backOff)
      if (!signal.aborted) throw error
    } finally {
      this.#leave(lane, signal.aborted ? undefined : pauseMs)
      if (this.#hasMore && this.#known.size < MAX_LOADED / 2) this.wake()
    }
  }

  /** The milliseconds after which the lane may go on. */
  async #attempt(lane: Lane, row: OutboxRow, open: OpenConnection): Promise<number> {
    const waitMs = this.#reserve(lane, open)
    if (waitMs > 0) await this.#sleep(waitMs, AbortSignal.any([open.signal, this.#deps.signal]))
    if (open.signal.aborted || this.#deps.signal.aborted) return 0
    row.attempts++
    let platformId = ''
    try {
      if (!open.adapter.capabilities.idempotentSend) await this.#deps.sending(row)
      const sent = await this.#transmit(open, row)
      platformId = sent.id
    } catch (error) {
      return this.#failed(lane, row, open, error)
    }
    await this.#record(() => this.#deps.sent(row, platformId))
    this.#remove(lane, row)
    return 0
  }
  /** What the platform answered is known here only: a database that fails for a while must not lead to another send. */
  async #record(work: () => Promise<void>): Promise<void> {
    const { signal, random, backOff } = this.#deps
    for (let attempts = 1; ; attempts++) {
      try {
        return await work()
      } catch (error) {
        if (signal.aborted) throw error
        await this.#sleep(backOffMs(attempts, random(), backOff), signal)
      }
    }
  }
  async #failed(lane: Lane, row: OutboxRow, open: OpenConnection, error: unknown): Promise<number> {
    const { clock, random, backOff } = this.#deps
    const failure: SendFailure = classifyFailure(error)
    if (failure.isUncertain && !open.adapter.capabilities.idempotentSend) row.uncertain++
    row.error = failure.error
    open.failed(error)
    if (failure.outcome === 'dead' && row.platform_id !== null) {
      // What was shown so far cannot be edited any more: the answer becomes a message of its own.
      row.platform_id = null
      await this.#record(() => this.#deps.deferred(row))
      return 0
    }
    if (failure.outcome === 'dead' || (failure.outcome === 'retry' && this.#isSpent(row, failure))) {
      await this.#record(() => this.#deps.dead(row))
      this.#remove(lane, row)
      return 0
    }
    // An attempt that the end of the connection cut short is no fault of the message.
    if (open.signal.aborted || failure.outcome === 'auth') row.attempts--
    const pauseMs = open.signal.aborted
      ? 0
      : failure.outcome === 'auth'
        ? AUTH_PAUSE_MS
        : Math.max(failure.pauseMs ?? 0, backOffMs(row.attempts, random(), backOff))
    row.next_at = pauseMs === 0 ? null : toIso(clock.now() + pauseMs)
    await this.#record(() => this.#deps.deferred(row))
    return pauseMs
  }

  /** A platform that is busy or away is waited for. Each attempt of unknown outcome may show the message once more. */
  #isSpent(row: OutboxRow, { isAway, isUncertain }: SendFailure): boolean {
    const { clock, maxAttempts, giveUpMs } = this.#deps
    if (isUncertain && row.uncertain >= maxAttempts) return true
    if (row.attempts < maxAttempts) return false
    return !isAway || clock.now() - Date.parse(row.created_at) >= giveUpMs
  }

  #remove(lane: Lane, row: OutboxRow): void {
    this.#known.delete(row.id)
    if (lane.rows[0] === row) lane.rows.shift()
  }
  #reserve({ bucket }: Lane, { adapter }: OpenConnection): number {
    const now = this.#deps.clock.now()
    this.#overall ??= new TokenBucket(adapter.capabilities.rate.overall)
    return Math.max(this.#overall.reserve(now), bucket?.reserve(now) ?? 0)
  }
  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(ms, end)
      function end(): void {
        cancel()
        signal.removeEventListener('abort', end)
        resolve()
      }
      signal.addEventListener('abort', end, { once: true })
    })
  }
  async #transmit(open: OpenConnection, row: OutboxRow): Promise<SentMessage> {
    const { promise, reject } = Promise.withResolvers<never>()
    const cancel = this.#deps.clock.after(SEND_TIMEOUT_MS, () =>
      reject(
        new UpstreamFailure(row.channel, 'The platform did not answer in time', { reason: 'timeout', retry: 'later' }),
      ),
    )
    try {
      return await Promise.race([this.#deps.transmit(open, row), promise])
    } finally {
      cancel()
    }
  }
}

function isBefore(row: OutboxRow, other: OutboxRow | undefined): boolean {
  if (!other) return false
  return row.seq === other.seq ? row.part < other.part : row.seq < other.seq
}
