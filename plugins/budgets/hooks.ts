import type { Hooks } from 'svc/sdk'
import { AgentKilled, AgentSpawned } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import { ModelCallStarting } from '../chat/contract.ts'
import { HourlyQuotaAsked } from '../usage/contract.ts'
import type { BudgetDesk } from './service.ts'

export function listen(hooks: Hooks, desk: BudgetDesk, agents: Agents): void {
  hooks.on(ModelCallStarting, (attempt) => desk.admit(attempt))
  hooks.on(AgentSpawned, ({ agent }) => desk.born(agent))
  hooks.on(AgentKilled, ({ agent }) => desk.forget(agent.id))
  hooks.on(HourlyQuotaAsked, async (quota) => {
    const limits = await Promise.all((await agents.list()).map((agent) => desk.limitsOf(agent)))
    const tokens = limits.reduce((sum, { hourTokens = 0 }) => sum + hourTokens, quota.tokens ?? 0)
    return { tokens: tokens > 0 ? tokens : null }
  })
}
