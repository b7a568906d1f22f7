import type { Socket } from 'svc/sdk'
import type { Approval } from '../../approvals/contract.ts'

/** Tells the open sockets of an agent that it asks for something, or was answered. */
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
  /** Beyond Interface 6.1, whose clients pass over types they do not know. */
  tell(approval: Approval): void {
    const sockets = this.#sockets.get(approval.agentId)
    if (!sockets) return
    const frame = JSON.stringify({
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
        requested_at: approval.requestedAt,
        timeout_secs: approval.timeoutSecs,
        expires_at: approval.expiresAt,
        decided_at: approval.decidedAt ?? null,
        decided_by: approval.decidedBy ?? null,
      },
    })
    for (const socket of sockets) socket.send(frame)
  }
}
