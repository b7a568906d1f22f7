import { UpstreamFailure } from 'svc/sdk'
import type { SentMessage } from 'svc/channels'
import type { Clock } from 'svc/internal'
import { toIso } from 'svc/internal'
import type { OpenConnection } from '../connections/connections.ts'
import { classifyFailure, backOffMs } from './retry.ts'
import type { BackOff, SendFailure } from './retry.ts'
import type { OutboxRow } from './schema.ts'

/** A send without an answer for so long has an unknown outcome. */
const SEND_TIMEOUT_MS = 120_000
/** What the platform rejects with `auth` is tried again so often, should the account stay connected. */
const AUTH_PAUSE_MS = 60_000

const MAY_HAVE_ARRIVED = 'it may have arrived, and resend_uncertain is off: see whether the chat has it before a retry'

export interface RowSenderDeps {
  readonly clock: Clock
  readonly random: () => number
  readonly maxAttempts: number
  /** The age at which a message is given up that the platform could not take so far. */
  readonly giveUpMs: number
  readonly backOff: BackOff
  /** Whether a message that the platform may have is sent again, although that may show it twice. */
  readonly resendUncertain: boolean
  /** Aborts when the plugin unloads. */
  readonly signal: AbortSignal
  /**
   * Durable before it settles: an attempt begins whose outcome a crash would hide. `false` when another daemon has
   * settled the row meanwhile, or makes the same attempt.
   */
  readonly sending: (row: OutboxRow) => Promise<boolean>
  /** The attempt that began was not made. */
  readonly notSent: (row: OutboxRow) => Promise<void>
  readonly sent: (row: OutboxRow, platformId: string) => Promise<void>
  readonly deferred: (row: OutboxRow) => Promise<void>
  readonly dead: (row: OutboxRow) => Promise<void>
  readonly transmit: (open: OpenConnection, row: OutboxRow) => Promise<SentMessage>
}
/** `gone`: it is a dead letter now, or was settled elsewhere. */
export type Attempt =
  | { readonly outcome: 'sent' | 'gone' }
  | { readonly outcome: 'deferred'; readonly pauseMs: number }
  /** The connection or the plugin ended before the attempt began. */
  | { readonly outcome: 'skipped' }
export interface AttemptOptions {
  /** For the limits of rate of the platform. */
  readonly waitMs: number
  /** Told of a failure; whether the row is given up for it. */
  readonly failed: (failure: SendFailure) => boolean
}

/** Tries to send one row, and records what came of it. */
export class RowSender {
  readonly #deps: RowSenderDeps
  constructor(deps: RowSenderDeps) {
    this.#deps = deps
  }

  async attempt(row: OutboxRow, open: OpenConnection, { waitMs, failed }: AttemptOptions): Promise<Attempt> {
    const { signal, sending, notSent, sent } = this.#deps
    if (waitMs > 0) await this.#sleep(waitMs, AbortSignal.any([open.signal, signal]))
    if (open.signal.aborted || signal.aborted) return { outcome: 'skipped' }
    // Somebody who revived the row wants it sent: its attempts were counted anew.
    if (row.attempts > 0 && row.uncertain > 0 && this.#isHeldBack(open)) {
      await this.giveUp(row, MAY_HAVE_ARRIVED)
      return { outcome: 'gone' }
    }
    row.attempts++
    let platformId = ''
    try {
      if (!open.adapter.capabilities.idempotentSend) {
        if (!(await sending(row))) return { outcome: 'gone' }
        // The database may have taken its time: by now another daemon may be connected.
        if (open.signal.aborted) {
          await this.#record(() => notSent(row))
          row.attempts--
          return { outcome: 'skipped' }
        }
      }
      platformId = (await this.#transmit(open, row)).id
    } catch (error) {
      return this.#failed(row, open, error, failed)
    }
    await this.#record(() => sent(row, platformId))
    return { outcome: 'sent' }
  }
  async giveUp(row: OutboxRow, error: string): Promise<void> {
    row.error = error
    await this.#record(() => this.#deps.dead(row))
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
  async #failed(
    row: OutboxRow,
    open: OpenConnection,
    error: unknown,
    isGivenUp: (failure: SendFailure) => boolean,
  ): Promise<Attempt> {
    const { deferred } = this.#deps
    const failure = classifyFailure(error)
    if (failure.isUncertain && !open.adapter.capabilities.idempotentSend) row.uncertain++
    row.error = failure.error
    open.failed(error)
    // An attempt that the end of the connection cut short is no fault of the message.
    const isCut = open.signal.aborted
    const isUnknown = failure.isUncertain && this.#isHeldBack(open)
    if (isUnknown) row.error = `${MAY_HAVE_ARRIVED} (${failure.error})`
    const isRejected = isUnknown || (!isCut && isGivenUp(failure))
    if (failure.outcome === 'dead' && takesAnotherForm(row, open)) {
      await this.#record(() => deferred(row))
      return { outcome: 'deferred', pauseMs: 0 }
    }
    if (failure.outcome === 'dead' || isRejected || (failure.outcome === 'retry' && this.#isSpent(row, failure))) {
      await this.#record(() => this.#deps.dead(row))
      return { outcome: 'gone' }
    }
    if (isCut || failure.outcome === 'auth') row.attempts--
    const pauseMs = isCut ? 0 : this.#pauseMs(row, failure)
    // With other credentials there is another connection, which waits for nothing.
    row.next_at = pauseMs === 0 || failure.outcome === 'auth' ? null : toIso(this.#deps.clock.now() + pauseMs)
    await this.#record(() => deferred(row))
    return { outcome: 'deferred', pauseMs }
  }
  #isHeldBack({ adapter }: OpenConnection): boolean {
    return !this.#deps.resendUncertain && !adapter.capabilities.idempotentSend
  }
  #pauseMs({ attempts }: OutboxRow, { outcome, pauseMs = 0 }: SendFailure): number {
    if (outcome === 'auth') return AUTH_PAUSE_MS
    return Math.max(pauseMs, backOffMs(attempts, this.#deps.random(), this.#deps.backOff))
  }

  /** A platform that is busy or away is waited for. Each attempt of unknown outcome may show the message once more. */
  #isSpent(row: OutboxRow, { isAway, isUncertain }: SendFailure): boolean {
    const { clock, maxAttempts, giveUpMs } = this.#deps
    if (isUncertain && row.uncertain >= maxAttempts) return true
    if (row.attempts < maxAttempts) return false
    return !isAway || clock.now() - Date.parse(row.created_at) >= giveUpMs
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

/** Changes a message that is refused as it is, where it may be taken otherwise. Whether there was something to change. */
function takesAnotherForm(row: OutboxRow, { adapter }: OpenConnection): boolean {
  const { isWithdrawn, replyTo } = row.payload
  if (row.platform_id !== null && isWithdrawn !== true) {
    // What was shown so far cannot be edited any more: the answer becomes a message of its own.
    row.platform_id = null
    return true
  }
  if (replyTo === undefined || adapter.capabilities.isPublic === true) return false
  // What it replies to may be gone.
  row.payload = { ...row.payload, replyTo: undefined }
  return true
}
