import type { Hooks } from 'svc/sdk'
import { AgentKilled } from '../agents/contract.ts'
import { ToolCallStarting, TurnEnded } from '../chat/contract.ts'
import { SessionCleared, SessionReset } from '../sessions/contract.ts'
import type { createGate } from './gate.ts'
import type { Desk } from './service.ts'

/** Nothing here needs the chat to be there: without it no tool is called. */
export function listen(hooks: Hooks, desk: Desk, gate: ReturnType<typeof createGate>): void {
  hooks.on(ToolCallStarting, gate)
  hooks.on(AgentKilled, async ({ agent }) => {
    await desk.withdraw(agent.id, 'the agent was killed')
    await desk.revokeAll(agent.id, undefined, 'the agent was killed')
  })
  hooks.on(SessionReset, ({ agentId, previousId }) => desk.revokeAll(agentId, previousId, 'the session ended'))
  hooks.on(SessionCleared, ({ agentId, sessionId }) => desk.revokeAll(agentId, sessionId, 'the session ended'))
  hooks.on(TurnEnded, async ({ agent, result }) => {
    if (result.stop === 'cancelled') await desk.withdraw(agent.id, 'the turn was stopped', result.turnId)
  })
}
