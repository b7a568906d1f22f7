import type { DaemonClient } from 'svc/cli'
import { ApprovalList } from './approval.ts'
import type { Approval } from './approval.ts'

const FIRST_DELAY_MS = 200
const POLL_INTERVAL_MS = 2000

interface ApprovalFeedDeps {
  readonly client: DaemonClient
  /** Of one agent, or of all. */
  readonly agentId: () => string | undefined
  readonly onAdded: (approval: Approval) => void
  /** One that was added was answered elsewhere, or expired. */
  readonly onSettled: (approval: Approval) => void
  readonly onFailure: (error: unknown) => void
}

/** Polls for pending approvals and reports each once. */
export class ApprovalFeed {
  readonly #deps: ApprovalFeedDeps
  #pending = new Map<string, Approval>()
  /**
   * Patterns of keys and tokens that vendors use, and values after a telltale name. All linear: no nested repetition.
   */
  readonly #settled = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #generation = 0
  constructor(deps: ApprovalFeedDeps) {
    this.#deps = deps
  }

  /** Those that wait, the oldest first. */
  get waiting(): readonly Approval[] {
    return [...this.#pending.values()]
  }

  start(): void {
    const generation = ++this.#generation
    const isCurrent = (): boolean => generation === this.#generation
    const schedule = (ms: number): void => {
      this.#timer = setTimeout(() => void poll(), ms)
    }
    const poll = async (): Promise<void> => {
      try {
        await this.#poll(isCurrent)
        if (isCurrent()) schedule(POLL_INTERVAL_MS)
      } catch (error) {
        if (isCurrent()) this.#deps.onFailure(error)
      }
    }
    clearTimeout(this.#timer)
    schedule(FIRST_DELAY_MS)
  }
  stop(): void {
    this.#generation++
    clearTimeout(this.#timer)
    this.#pending.clear()
  }
  /** It was answered here. */
  settle(id: string): void {
    this.#settled.add(id)
    this.#pending.delete(id)
  }
  /** It could not be answered: the next poll adds it again. */
  forget(id: string): void {
    this.#pending.delete(id)
  }

  async #poll(isCurrent: () => boolean): Promise<void> {
    const agent = this.#deps.agentId()
    const path = `/api/approvals?status=pending${agent === undefined ? '' : `&agent_id=${agent}`}`
    const { approvals } = await this.#deps.client.call('GET', path, ApprovalList)
    if (!isCurrent()) return
    const before = this.#pending
    const waiting = approvals.filter(({ id }) => !this.#settled.has(id))
    this.#pending = new Map(waiting.map((approval) => [approval.id, approval]))
    for (const [id, approval] of before) if (!this.#pending.has(id)) this.#deps.onSettled(approval)
    for (const [id, approval] of this.#pending) if (!before.has(id)) this.#deps.onAdded(approval)
  }
}
