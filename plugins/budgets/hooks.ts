import type { Hooks } from 'svc/sdk'
import { AgentKilled, AgentSpawned } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import { ModelCallStarting } from '../chat/contract.ts'
import { ResolveHourlyQuota } from '../usage/contract.ts'
import type { BudgetService } from './service.ts'

export function listen(hooks: Hooks, service: BudgetService, agents: Agents): void {
  hooks.on(ModelCallStarting, (attempt) => service.admit(attempt))
  hooks.on(AgentSpawned, ({ agent }) => service.agentSpawned(agent))
  hooks.on(AgentKilled, ({ agent }) => service.forget(agent.id))
  hooks.on(ResolveHourlyQuota, async (quota) => {
    const limits = await Promise.all((await agents.list()).map((agent) => service.limitsOf(agent)))
    const tokens = limits.reduce((sum, { hourTokens = 0 }) => sum + hourTokens, quota.tokens ?? 0)
    return { tokens: tokens > 0 ? tokens : null }
  })
}
