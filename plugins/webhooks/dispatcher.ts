import type { Counter, Fetch } from 'svc/sdk'
import type { DeliveryRow, Settings, Target } from './schema.ts'
import { messageOf, send } from './sending.ts'
import type { WebhookStore } from './store.ts'

export interface DispatcherParts {
  readonly store: WebhookStore
  readonly fetch: Fetch
  readonly secret: (target: Target) => Promise<string | undefined>
  readonly settings: Pick<
    Settings,
    'max_attempts' | 'back_off_min_ms' | 'back_off_max_ms' | 'timeout_ms' | 'max_concurrent'
  >
  readonly log: { warn(message: string, facts?: object): void; error(message: string, facts?: object): void }
  readonly counted: Counter
  readonly signal: AbortSignal
  /** Runs what unloading waits for. */
  readonly run: (work: () => Promise<void>) => void
  readonly now?: () => number
  readonly random?: () => number
}

/** How long a claim holds beyond the attempt itself. */
const GRACE_MS = 5_000

/** Sends what waits, to each target in order, to some at once. A claimed row is nobody else's until its lease ends. */
export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #now: () => number
  /** Targets that are being served, by id. */
  readonly #busy = new Set<string>()
  constructor(parts: DispatcherParts) {
    this.#parts = parts
    this.#now = parts.now ?? Date.now
  }

  /** Begins with every target that has something due. Settles when all have begun. */
  async dispatch(): Promise<void> {
    const { store, settings, run, log, signal } = this.#parts
    for (const target of await store.enabled()) {
      if (this.#busy.size >= settings.max_concurrent || signal.aborted) return
      if (this.#busy.has(target.id)) continue
      this.#busy.add(target.id)
      run(async () => {
        try {
          await this.#serve(target)
        } catch (error) {
          if (!signal.aborted)
            log.error('deliveries to a webhook stopped', {
              webhook: target.id,
              error: error instanceof Error ? error.message : String(error),
            })
        } finally {
          this.#busy.delete(target.id)
        }
      })
    }
  }

  async #serve(target: Target): Promise<void> {
    const { store, settings, signal } = this.#parts
    while (!signal.aborted) {
      const head = await store.head(target.id)
      const now = this.#iso()
      if (!head || head.due_at > now || (head.lease_until !== null && head.lease_until > now)) return
      if (head.attempts >= settings.max_attempts) {
        await this.#settle(target, head, {
          status: head.status,
          error: head.error ?? 'the attempts were not ended',
          retryAfterMs: undefined,
        })
        continue
      }
      if (!(await store.claim(head, now, this.#iso(settings.timeout_ms + GRACE_MS)))) return
      // Whoever changed the target meanwhile means this attempt too.
      const current = await store.find(target.id)
      if (!current?.enabled) return
      const sent = await send(this.#parts.fetch, current, messageOf(current, head), {
        secret: await this.#parts.secret(current),
        timeoutMs: settings.timeout_ms,
        seconds: Math.floor(this.#now() / 1000),
        signal,
      })
      if (!(await this.#settle(current, { ...head, attempts: head.attempts + 1 }, sent))) return
    }
  }

  /** Whether the next one may follow at once. */
  async #settle(
    target: Target,
    row: DeliveryRow,
    { status, error, retryAfterMs }: Awaited<ReturnType<typeof send>>,
  ): Promise<boolean> {
    const { store, settings, log, counted } = this.#parts
    const over = error !== null && row.attempts >= settings.max_attempts
    const state = error === null ? ('delivered' as const) : over ? ('dead' as const) : ('pending' as const)
    counted.add(1, { outcome: state === 'pending' ? 'retried' : state })
    const pause =
      state === 'pending'
        ? Math.max(
            retryAfterMs === undefined ? 0 : Math.min(retryAfterMs, settings.back_off_max_ms),
            this.#backOff(row.attempts),
          )
        : 0
    await store.settle(row, {
      state,
      dueAt: this.#iso(pause),
      status,
      error,
      settledAt: state === 'pending' ? null : this.#iso(),
    })
    if (over)
      log.warn(`an event could not be delivered in ${row.attempts} attempts and is a dead letter`, {
        webhook: target.id,
        event: row.event_id,
        error,
      })
    return state !== 'pending'
  }

  /** Doubles from the least to the most; a fifth of it by chance, so that targets that failed together do not come back together. */
  #backOff(attempts: number): number {
    const { back_off_min_ms: least, back_off_max_ms: most } = this.#parts.settings
    return Math.round(Math.min(most, least * 2 ** (attempts - 1)) * (0.8 + 0.2 * (this.#parts.random ?? Math.random)()))
  }
  #iso(inMs = 0): string {
    return new Date(this.#now() + inMs).toISOString()
  }
}
