import { hash } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock } from '../clock.ts'
import type { ConnectionStore } from './store.ts'

export interface LeaseDeps {
  readonly store: Pick<ConnectionStore, 'takeLease' | 'releaseLease'>
  /** The same in every process that uses one home, so that a crashed daemon does not have to wait for itself. */
  readonly holder: string
  readonly clock: Clock
  readonly leaseMs: number
}

/** What tells the daemon of one home from every other. */
export function leaseHolder({ homeDir }: { readonly homeDir: string }): string {
  return hash('sha256', `${hostname()}\n${homeDir}`).slice(0, 32)
}

/** The right to be the only poller of an account among the daemons on one database. */
export class AccountLease {
  readonly #deps: LeaseDeps
  readonly #channel: string
  readonly #account: string
  #expiresAt = 0
  #cancel: (() => void) | undefined
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
    this.#cancel?.()
    if (!this.#held) return
    this.#held = undefined
    await this.#deps.store.releaseLease(this.#channel, this.#account, this.#deps.holder)
  }

  async #take(): Promise<boolean> {
    const { store, holder, clock, leaseMs } = this.#deps
    const now = clock.now()
    const taken = await store.takeLease(this.#channel, this.#account, holder, now, now + leaseMs)
    if (taken) this.#expiresAt = now + leaseMs
    return taken
  }

  #schedule(held: AbortController): void {
    const { clock, leaseMs } = this.#deps
    this.#cancel = clock.after(leaseMs / 3, () => void this.#renew(held))
  }
  async #renew(held: AbortController): Promise<void> {
    if (this.#held !== held) return
    let isMine = true
    try {
      isMine = await this.#take()
    } catch {
      // The database may be back before the lease ends.
      isMine = this.#deps.clock.now() < this.#expiresAt
    }
    if (this.#held !== held) return
    if (isMine) this.#schedule(held)
    else held.abort(new Error('another daemon on this database has taken over this account'))
  }
}
