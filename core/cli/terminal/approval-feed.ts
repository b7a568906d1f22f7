import type { DaemonClient } from '../../net/daemon-client.ts'
import { ApprovalList } from '../approvals.ts'
import type { Approval } from '../approvals.ts'

const FIRST_MS = 200
const AGAIN_MS = 2000

interface FeedParts {
  readonly client: DaemonClient
  /** Of one agent, or of all. */
  readonly agentId: () => string | undefined
  readonly onAsked: (approval: Approval) => void
  /** One that was asked about was answered elsewhere, or expired. */
  readonly onSettled: (approval: Approval) => void
  readonly onFailure: (error: unknown) => void
}

/** Looks whether somebody is asked for something, and says so once for each request. */
export class ApprovalFeed {
  readonly #parts: FeedParts
  #known = new Map<string, Approval>()
  /** An answer of the daemon may be older than the answer that was given here. */
  readonly #settled = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #watching = 0
  constructor(parts: FeedParts) {
    this.#parts = parts
  }

  /** Those that wait, the oldest first. */
  get waiting(): readonly Approval[] {
    return [...this.#known.values()]
  }

  start(): void {
    const turn = ++this.#watching
    const again = (ms: number): void => {
      this.#timer = setTimeout(() => void look(), ms)
    }
    const look = async (): Promise<void> => {
      try {
        await this.#look(() => turn === this.#watching)
        if (turn === this.#watching) again(AGAIN_MS)
      } catch (error) {
        if (turn === this.#watching) this.#parts.onFailure(error)
      }
    }
    clearTimeout(this.#timer)
    again(FIRST_MS)
  }
  stop(): void {
    this.#watching++
    clearTimeout(this.#timer)
    this.#known.clear()
  }
  /** It was answered here. */
  settle(id: string): void {
    this.#settled.add(id)
    this.#known.delete(id)
  }
  /** It could not be answered. */
  askAgain(id: string): void {
    this.#known.delete(id)
  }

  async #look(current: () => boolean): Promise<void> {
    const agent = this.#parts.agentId()
    const path = `/api/approvals?status=pending${agent === undefined ? '' : `&agent_id=${agent}`}`
    const { approvals } = await this.#parts.client.call('GET', path, ApprovalList)
    if (!current()) return
    const before = this.#known
    const waiting = approvals.filter(({ id }) => !this.#settled.has(id))
    this.#known = new Map(waiting.map((approval) => [approval.id, approval]))
    for (const [id, approval] of before) if (!this.#known.has(id)) this.#parts.onSettled(approval)
    for (const [id, approval] of this.#known) if (!before.has(id)) this.#parts.onAsked(approval)
  }
}
