import { messageOf } from 'svc/internal'
import type { Counter, Fetch } from 'svc/sdk'
import type { DeliveryRow, Settings, Target } from './schema.ts'
import { send, toMessage } from './send.ts'
import type { SendResult } from './send.ts'
import type { WebhookStore } from './store.ts'

export interface DispatcherDeps {
  readonly store: WebhookStore
  readonly fetch: Fetch
  readonly secret: (target: Target) => Promise<string | undefined>
  readonly settings: Pick<
    Settings,
    'max_attempts' | 'back_off_min_ms' | 'back_off_max_ms' | 'timeout_ms' | 'max_concurrent'
  >
  readonly log: { warn(message: string, facts?: object): void; error(message: string, facts?: object): void }
  readonly deliveries: Counter
  readonly signal: AbortSignal
  /** Runs work that unloading waits for. */
  readonly run: (work: () => Promise<void>) => void
  readonly now?: () => number
  readonly random?: () => number
}

/** How long a claim holds beyond the attempt itself. */
const GRACE_MS = 5_000

/**
 * Sends waiting deliveries: in order to each target, to several targets at once. A claimed row belongs to one process
 * until its lease ends.
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps
  readonly #now: () => number
  /** The ids of targets that are being served. */
  readonly #busy = new Set<string>()
  constructor(deps: DispatcherDeps) {
    this.#deps = deps
    this.#now = deps.now ?? Date.now
  }

  /** Starts on every target with a due delivery. Settles when all have started. */
  async dispatch(): Promise<void> {
    const { store, settings, run, signal } = this.#deps
    for (const target of await store.enabled()) {
      if (this.#busy.size >= settings.max_concurrent || signal.aborted) return
      if (this.#busy.has(target.id)) continue
      this.#busy.add(target.id)
      run(() => this.#serveInBackground(target))
    }
  }

  async #serveInBackground(target: Target): Promise<void> {
    const { log, signal } = this.#deps
    try {
      await this.#serve(target)
    } catch (error) {
      if (!signal.aborted)
        log.error('deliveries to a webhook stopped', {
          webhook: target.id,
          error: messageOf(error),
        })
    } finally {
      this.#busy.delete(target.id)
    }
  }

  async #serve(target: Target): Promise<void> {
    const { store, settings, signal } = this.#deps
    while (!signal.aborted) {
      const head = await store.head(target.id)
      const now = this.#iso()
      if (!head || (head.lease_until !== null && head.lease_until > now)) return
      // The first attempt waits for no clock: that of the daemon which noticed the event may be ahead.
      if (head.attempts > 0 && head.due_at > now) return
      if (head.attempts >= settings.max_attempts) {
        const error = head.error ?? 'the attempts were not ended'
        await this.#settle(target, head, { status: head.status, error, retryAfterMs: undefined })
        continue
      }
      if (!(await store.claim(head, now, this.#iso(settings.timeout_ms + GRACE_MS)))) return
      // A change of the target in the meantime applies to this attempt too.
      const current = await store.find(target.id)
      if (!current?.enabled) return
      const result = await send(this.#deps.fetch, current, toMessage(current, head), {
        secret: await this.#deps.secret(current),
        timeoutMs: settings.timeout_ms,
        seconds: Math.floor(this.#now() / 1000),
        signal,
      })
      const isSettled = await this.#settle(current, { ...head, attempts: head.attempts + 1 }, result)
      if (!isSettled) return
    }
  }

  /** Whether the delivery has ended, so that the next one may follow at once. */
  async #settle(target: Target, row: DeliveryRow, { status, error, retryAfterMs }: SendResult): Promise<boolean> {
    const { store, settings, log, deliveries } = this.#deps
    if (error !== null && row.attempts < settings.max_attempts) {
      deliveries.add(1, { outcome: 'retried' })
      const requestedMs = Math.min(retryAfterMs ?? 0, settings.back_off_max_ms)
      const dueAt = this.#iso(Math.max(requestedMs, this.#backOff(row.attempts)))
      await store.settle(row, { state: 'pending', dueAt, status, error, settledAt: null })
      return false
    }
    const state = error === null ? 'delivered' : 'dead'
    deliveries.add(1, { outcome: state })
    await store.settle(row, { state, dueAt: this.#iso(), status, error, settledAt: this.#iso() })
    if (state === 'dead')
      log.warn(`an event could not be delivered in ${row.attempts} attempts and is a dead letter`, {
        webhook: target.id,
        event: row.event_id,
        error,
      })
    return true
  }

  /**
   * Doubles from the minimum to the maximum. A fifth is random, so that targets that failed together do not come back
   * together.
   */
  #backOff(attempts: number): number {
    const { back_off_min_ms: min, back_off_max_ms: max } = this.#deps.settings
    return Math.round(Math.min(max, min * 2 ** (attempts - 1)) * (0.8 + 0.2 * (this.#deps.random ?? Math.random)()))
  }
  #iso(inMs = 0): string {
    return new Date(this.#now() + inMs).toISOString()
  }
}
