import type { Socket } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Approval } from '../../approvals/contract.ts'

/** A client with more than this unsent skips a list and gets the next one. */
const MAX_UNSENT_BYTES = 256 * 1024

/** Sends the list of agents to every open socket: one query and one serialisation, however many sockets there are. */
export class AgentListFeed {
  readonly #agents: Agents
  readonly #firstMs: number
  readonly #sockets = new Set<Socket>()
  readonly #new = new Set<Socket>()
  readonly #onFailure: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined
  constructor(options: {
    readonly agents: Agents
    readonly firstMs: number
    readonly onFailure: (error: unknown) => void
  }) {
    this.#agents = options.agents
    this.#firstMs = options.firstMs
    this.#onFailure = options.onFailure
  }

  get size(): number {
    return this.#sockets.size
  }
  add(socket: Socket): void {
    this.#sockets.add(socket)
    this.#new.add(socket)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#send(this.#new).catch(this.#onFailure)
    }, this.#firstMs).unref()
  }
  remove(socket: Socket): void {
    this.#sockets.delete(socket)
    this.#new.delete(socket)
  }
  /** Interface 6.1: every five seconds. */
  sendToAll(): Promise<void> {
    return this.#send(this.#sockets)
  }
  end(): void {
    clearTimeout(this.#timer)
  }

  async #send(sockets: ReadonlySet<Socket>): Promise<void> {
    if (sockets.size === 0) return
    const summaries = await this.#agents.summaries()
    const agents = summaries.map(({ id, name, state, model_provider, model_name }) => ({
      id,
      name,
      state,
      model_provider,
      model_name,
    }))
    const frame = JSON.stringify({ type: 'agents_updated', agents })
    for (const socket of sockets) {
      this.#new.delete(socket)
      if (socket.bufferedBytes < MAX_UNSENT_BYTES) socket.send(frame)
    }
  }
}

/** Sends the approval requests of an agent, and their decisions, to the agent's open sockets. */
export class ApprovalFeed {
  readonly #sockets = new Map<string, Set<Socket>>()

  add(agentId: string, socket: Socket): void {
    const sockets = this.#sockets.get(agentId)
    if (sockets) sockets.add(socket)
    else this.#sockets.set(agentId, new Set([socket]))
  }
  remove(agentId: string, socket: Socket): void {
    const sockets = this.#sockets.get(agentId)
    sockets?.delete(socket)
    if (sockets?.size === 0) this.#sockets.delete(agentId)
  }
  /** An addition to Interface 6.1, whose clients ignore types they do not know. */
  send(approval: Approval): void {
    const sockets = this.#sockets.get(approval.agentId)
    if (!sockets) return
    const frame = encodeApproval(approval)
    for (const socket of sockets) socket.send(frame)
  }
}

function encodeApproval(approval: Approval): string {
  return JSON.stringify({
    type: 'approval',
    approval: {
      id: approval.id,
      agent_id: approval.agentId,
      agent_name: approval.agentName,
      session_id: approval.sessionId,
      tool_name: approval.tool,
      action: approval.action,
      description: approval.description,
      action_summary: approval.summary,
      risk_level: approval.risk,
      status: approval.state,
      form: approval.form ?? null,
      requested_at: approval.requestedAt,
      timeout_secs: approval.timeoutSecs,
      expires_at: approval.expiresAt,
      decided_at: approval.decidedAt ?? null,
      decided_by: approval.decidedBy ?? null,
    },
  })
}
