import type { Hooks } from 'svc/sdk'
import { AgentKilled } from '../agents/contract.ts'
import { ToolCallStarting, TurnEnded } from '../chat/contract.ts'
import { SessionCleared, SessionReset } from '../sessions/contract.ts'
import type { ApprovalGate } from './gate.ts'
import type { ApprovalService } from './service.ts'

/** Works without the chat plugin too: then no tool is called. */
export function listen(hooks: Hooks, service: ApprovalService, gate: () => Promise<ApprovalGate>): void {
  hooks.on(ToolCallStarting, async (attempt) => (await gate()).check(attempt))
  hooks.on(AgentKilled, async ({ agent }) => {
    await service.withdraw(agent.id, 'the agent was killed')
    await service.revokeAll(agent.id, undefined, 'the agent was killed')
  })
  hooks.on(SessionReset, ({ agentId, previousId }) => service.revokeAll(agentId, previousId, 'the session ended'))
  hooks.on(SessionCleared, ({ agentId, sessionId }) => service.revokeAll(agentId, sessionId, 'the session ended'))
  hooks.on(TurnEnded, async ({ agent, result }) => {
    if (result.stop === 'cancelled') await service.withdraw(agent.id, 'the turn was stopped', result.turnId)
  })
}
