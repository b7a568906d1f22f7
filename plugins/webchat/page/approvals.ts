import { ApiError, explain } from './api.ts'
import type { Api } from './api.ts'
import type { FormAnswers } from './approval-form.tsx'
import { canNotify } from './approval-notifications.ts'
import { Observable } from './observable.ts'
import type { Approval, Grant } from './wire.ts'

/** An agent requests approvals while it answers, so the page polls fast then, in case no socket reports them. */
const busyMs = 3000
const idleMs = 10_000
/** A daemon without approvals is polled again in case they are switched on. */
const absentMs = 120_000

/** What goes with an answer: the reason of a rejection, or what was filled in. */
export interface AnswerDetails {
  readonly reason?: string | undefined
  readonly content?: FormAnswers | undefined
}

/** The pending approvals. */
export class PendingApprovals {
  readonly pending = new Observable<readonly Approval[]>([])
  /** Why the last answer was refused. */
  readonly problem = new Observable<string | undefined>(undefined)
  /** What passes without a question. */
  readonly grants = new Observable<readonly Grant[]>([])
  readonly #api: Api
  readonly #busy: () => boolean
  #timer: ReturnType<typeof setTimeout> | undefined
  #asking: Promise<void> | undefined
  #absent = false
  #started = false

  constructor(api: Api, busy: () => boolean) {
    this.#api = api
    this.#busy = busy
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && this.#started) void this.refresh()
    })
  }

  start(): void {
    if (this.#started) return
    this.#started = true
    void this.refresh()
    void this.listGrants()
  }
  stop(): void {
    this.#started = false
    clearTimeout(this.#timer)
  }
  /** Polls now, and from then on at the usual pace. */
  refresh(): Promise<void> {
    this.#asking ??= this.#fetchPending().finally(() => {
      this.#asking = undefined
      this.#wait()
    })
    return this.#asking
  }
  /** The socket reported a change, or a turn began. */
  hurry(): void {
    if (!this.#started || this.#absent) return
    // The answer on its way may be outdated already.
    void (this.#asking ?? Promise.resolve()).then(() => this.refresh())
    if (this.grants.value.length > 0) void this.listGrants()
  }

  /** With its payload, however large. Throws what the daemon refused. */
  whole(id: string): Promise<Approval> {
    return this.#api.approval(id)
  }

  async answer(id: string, verb: 'once' | 'session' | 'reject', details?: AnswerDetails): Promise<void> {
    try {
      await this.#api.answerApproval(id, verb, details)
      this.problem.set(undefined)
      this.pending.update((known) => known.filter((approval) => approval.id !== id))
    } catch (error) {
      this.problem.set(explain(error))
    }
    await Promise.all([this.refresh(), ...(verb === 'session' ? [this.listGrants()] : [])])
  }
  async listGrants(): Promise<void> {
    try {
      const grants = await this.#api.grants()
      if (JSON.stringify(grants) !== JSON.stringify(this.grants.value)) this.grants.set(grants)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error // Without approvals, or out of reach, which shows elsewhere.
    }
  }
  /** Throws what the daemon refused. */
  async revoke(id: string): Promise<void> {
    try {
      await this.#api.revokeGrant(id)
    } catch (error) {
      // Over already: what is shown now is what holds.
      if (!(error instanceof ApiError && (error.status === 409 || error.status === 404))) throw error
    }
    await this.listGrants()
  }

  #wait(): void {
    clearTimeout(this.#timer)
    if (!this.#started) return
    const delayMs = this.#absent ? absentMs : this.#busy() || this.pending.value.length > 0 ? busyMs : idleMs
    // A page in the background polls only to notify; another one does it when it is shown again.
    this.#timer = setTimeout(() => {
      if (document.hidden && !canNotify()) this.#wait()
      else void this.refresh()
    }, delayMs)
  }
  async #fetchPending(): Promise<void> {
    try {
      const { approvals } = await this.#api.approvals()
      this.#absent = false
      if (JSON.stringify(approvals) !== JSON.stringify(this.pending.value)) this.pending.set(approvals)
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.#absent = true
      // Out of reach for now, which the page shows elsewhere; what is no longer known must not be offered.
      if (!(error instanceof ApiError && error.status === 429)) this.pending.set([])
    }
  }
}
