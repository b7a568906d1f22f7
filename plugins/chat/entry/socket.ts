import { defineSocket } from 'svc/sdk'
import type { AnySocketRoute } from 'svc/sdk'
import { AgentParams } from '../../agents/contract.ts'
import type { SocketDeps } from './socket-conversation.ts'

const MESSAGE_COST = 30
const PING = '{"type":"ping"}'
/** Recognised before it is parsed, because the limiter comes first: pings must not use up the budget of messages. */
const PINGS = /^\s*\{\s*"type"\s*:\s*"ping"\s*\}\s*$/

/** Interface 6.1. Leaving ends nothing that was accepted. */
export function chatSocket(deps: SocketDeps): AnySocketRoute {
  return defineSocket({
    path: '/api/agents/:id/ws',
    summary: 'Chat with an agent over a WebSocket',
    auth: 'bearer',
    cost: 5,
    effect: 'conversation',
    frameCost: MESSAGE_COST,
    costOf: (raw) => (raw.length <= PING.length + 10 && PINGS.test(raw) ? 1 : MESSAGE_COST),
    params: AgentParams,
    errors: ['agent_not_found'],
    async accept({ params, principal }) {
      const { id } = await deps.agents.require(params.id)
      const { SocketConversation } = await import('./socket-conversation.ts')
      return new SocketConversation(deps, id, principal)
    },
    open: (socket, conversation) => conversation.open(socket),
    frame: (socket, conversation, raw) => conversation.frame(socket, raw),
    refused: (socket, conversation, problem) => conversation.refused(socket, problem),
    close: (socket, conversation) => conversation.close(socket),
  })
}
