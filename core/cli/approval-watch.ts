import { escapeControls } from '../log/text.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import { ApprovalList, decide } from './approvals.ts'
import { note } from './output.ts'

const FIRST_MS = 300
const AGAIN_MS = 2000

/** While a tool is on its way, looks whether it waits for a person, and says so once for each request. */
export class ApprovalWatch {
  readonly #client: DaemonClient
  readonly #told = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #watching = 0
  constructor(client: DaemonClient) {
    this.#client = client
  }

  start(agentId: string): void {
    const turn = ++this.#watching
    const look = async (): Promise<void> => {
      try {
        const { approvals } = await this.#client.call(
          'GET',
          `/api/approvals?status=pending&agent_id=${agentId}`,
          ApprovalList,
        )
        if (turn !== this.#watching) return
        for (const { id, agent_name: agent, risk_level: risk, action_summary: what } of approvals.filter(
          (each) => !this.#told.has(each.id),
        )) {
          this.#told.add(id)
          note(
            `${escapeControls(agent)} needs your approval (${risk} risk): ${escapeControls(what)}\n  /approve ${id.slice(0, 8)} or /reject ${id.slice(0, 8)}; elsewhere: svc approval approve ${id.slice(0, 8)}`,
          )
        }
      } catch {
        // The answer that is being read tells of a daemon that is gone; one without approvals has nothing to tell.
        return
      }
      this.#timer = setTimeout(() => void look(), AGAIN_MS).unref()
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void look(), FIRST_MS).unref()
  }
  stop(): void {
    this.#watching++
    clearTimeout(this.#timer)
  }

  /** `/approve <id>` and `/reject <id>`, at any time. Throws what the daemon refused. */
  async answer(verb: 'approve' | 'reject', id: string): Promise<void> {
    const { approval, answer } = await decide(this.#client, verb, id)
    note(`${answer.status}: ${escapeControls(approval.action_summary)}`)
  }
}
