import { BEATS, HeartbeatWatch } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { ConnectionStore } from './store.ts'

export interface LeaseDeps {
  readonly store: Pick<ConnectionStore, 'renewLease' | 'holderOf' | 'takeLease' | 'releaseLease'>
  /** The same in every process that uses one home, so that a crashed daemon does not have to wait for itself. */
  readonly holder: string
  readonly clock: Pick<Clock, 'after'>
  readonly leaseMs: number
}

/** The part of a lease in which its holder gives up when it cannot renew it: before another daemon may take it. */
const SURE = 0.8

/**
 * The right to be the only poller of an account among the daemons on one database. Its holder counts up its row;
 * another takes over when that stood still through a whole lease of its own, whatever either clock says. Call
 * `acquire` once in each beat.
 */
export class AccountLease {
  readonly #deps: LeaseDeps
  readonly #channel: string
  readonly #account: string
  readonly #watch = new HeartbeatWatch()
  #cancelRenewal: (() => void) | undefined
  #cancelExpiry: (() => void) | undefined
  #held: AbortController | undefined

  constructor(deps: LeaseDeps, channel: string, account: string) {
    this.#deps = deps
    this.#channel = channel
    this.#account = account
  }

  /** A signal that aborts when the lease is lost; `undefined` while another daemon has it. Renews it by itself. */
  async acquire(): Promise<AbortSignal | undefined> {
    if (this.#held && !this.#held.signal.aborted) return this.#held.signal
    if (!(await this.#take())) return undefined
    this.#held = new AbortController()
    this.#schedule(this.#held)
    return this.#held.signal
  }

  /** Lets another daemon take over at once. */
  async release(): Promise<void> {
    this.#cancelRenewal?.()
    this.#stopExpiry()
    if (!this.#held) return
    this.#held = undefined
    await this.#deps.store.releaseLease(this.#channel, this.#account, this.#deps.holder)
  }

  async #take(): Promise<boolean> {
    try {
      return await this.#tryToTake()
    } catch (error) {
      this.#watch.startAgain()
      throw error
    }
  }
  async #tryToTake(): Promise<boolean> {
    const { store, holder } = this.#deps
    if (await store.takeLease(this.#channel, this.#account, holder)) return true
    const other = await store.holderOf(this.#channel, this.#account)
    const [dead] = this.#watch.check(other ? [other] : [])
    return dead !== undefined && (await store.takeLease(this.#channel, this.#account, holder, dead))
  }

  #schedule(held: AbortController): void {
    const { clock, leaseMs } = this.#deps
    this.#cancelRenewal = clock.after(leaseMs / BEATS, () => void this.#renew(held))
  }
  async #renew(held: AbortController): Promise<void> {
    const { store, clock, holder, leaseMs } = this.#deps
    // The database may be back before the lease ends; it may also answer never.
    this.#cancelExpiry ??= clock.after(leaseMs * (SURE - 1 / BEATS), () => {
      this.#lose(held, 'the lease on this account could not be renewed in time')
    })
    const isMine = await store.renewLease(this.#channel, this.#account, holder).catch(() => undefined)
    if (this.#held !== held || held.signal.aborted) return
    if (isMine === false) return this.#lose(held, 'another daemon on this database has taken over this account')
    if (isMine) this.#stopExpiry()
    this.#schedule(held)
  }
  #lose(held: AbortController, reason: string): void {
    this.#cancelRenewal?.()
    this.#stopExpiry()
    held.abort(new Error(reason))
  }
  #stopExpiry(): void {
    this.#cancelExpiry?.()
    this.#cancelExpiry = undefined
  }
}
