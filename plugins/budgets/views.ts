import { toUsd } from 'svc/providers'
import { statusOf } from './limits.ts'
import type { BudgetRouteDeps } from './routes.ts'
import type { Account, BudgetService } from './service.ts'

/** What all agents together may spend, and what they spent. */
export async function toBudget(service: BudgetService) {
  const account = await service.accountOfAll()
  const { spent, threshold } = account
  return {
    ...money(account),
    hour_spent_usd: toUsd(spent.hourNano),
    today_spent_usd: toUsd(spent.dayNano),
    month_spent_usd: toUsd(spent.monthNano),
    alert_threshold: threshold,
    default_max_llm_tokens_per_hour: await service.defaultHourTokens(),
  }
}

/** What one agent may spend, and what it spent. Throws `agent_not_found`. */
export async function toAgentBudget({ service, agents, spending }: BudgetRouteDeps, id: string) {
  const agent = await agents.require(id)
  const [account, total] = await Promise.all([service.accountOf(agent), spending.total(id)])
  const { spent, together, limits } = account
  return {
    agent_id: id,
    agent_name: agent.name,
    total_cost_usd: toUsd(total),
    today_cost_usd: toUsd(spent.dayNano),
    month_cost_usd: toUsd(spent.monthNano),
    today_spent_usd: toUsd(spent.dayNano),
    month_spent_usd: toUsd(spent.monthNano),
    ...money(account),
    tokens: {
      used: together.hourTokens,
      limit: limits.hourTokens ?? 0,
      pct: part(together.hourTokens, limits.hourTokens),
      reserved: together.heldTokens,
    },
  }
}

function money({ limits, together: spent, lines, threshold }: Account) {
  return {
    hourly_limit_usd: toUsd(limits.hourNano ?? 0),
    daily_limit_usd: toUsd(limits.dayNano ?? 0),
    monthly_limit_usd: toUsd(limits.monthNano ?? 0),
    status: statusOf(lines, threshold),
    reserved_usd: toUsd(spent.heldNano),
    unpriced_requests_today: spent.unpricedToday,
    hourly: {
      spend: toUsd(spent.hourNano),
      limit: toUsd(limits.hourNano ?? 0),
      pct: part(spent.hourNano, limits.hourNano),
    },
    daily: { spend: toUsd(spent.dayNano), limit: toUsd(limits.dayNano ?? 0), pct: part(spent.dayNano, limits.dayNano) },
    monthly: {
      spend: toUsd(spent.monthNano),
      limit: toUsd(limits.monthNano ?? 0),
      pct: part(spent.monthNano, limits.monthNano),
    },
  }
}

const part = (spent: number, limit: number | undefined): number => (limit === undefined ? 0 : spent / limit)
