import { toUsd } from 'svc/providers'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import type { Spending } from '../usage/contract.ts'
import { AgentBudget, AgentBudgetChange, AgentRank, Budget, BudgetChange } from './schema.ts'
import type { BudgetService } from './service.ts'

export interface BudgetRouteDeps {
  readonly service: BudgetService
  readonly agents: Agents
  readonly spending: Spending
}

const views = () => import('./views.ts')

/** What may be spent and what was (Interface 2.11, 4.9). */
export function budgetRoutes(deps: BudgetRouteDeps): readonly AnyRoute[] {
  return [readAllRoute(deps), changeAllRoute(deps), rankingRoute(deps), readAgentRoute(deps), changeAgentRoute(deps)]
}

function readAllRoute({ service }: BudgetRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/budget',
    summary: 'What all agents together may spend, and what they spent',
    auth: 'bearer',
    effect: 'read',
    cost: 3,
    returns: Budget,
    description:
      'Hours, days and months are those of UTC. A limit of 0 is unlimited; `pct` is the part of a limit that is ' +
      'used, 1 is all of it. Calls without a known price are in no sum; `unpriced_requests_today` is how ' +
      'many calls that were.',
    handle: async () => (await views()).toBudget(service),
  })
}

function changeAllRoute({ service }: BudgetRouteDeps): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/budget',
    summary: 'Set what all agents together may spend',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    body: BudgetChange,
    shown: async () => ({ fields: await (await views()).toBudget(service), measured: Object.keys(Budget.entries) }),
    returns: Budget,
    errors: ['invalid_request'],
    description:
      'Missing fields stay; 0 is unlimited, null uses the configuration. Takes effect at once and survives ' +
      'restarts.',
    example: { body: { daily_limit_usd: 10, monthly_limit_usd: 100 } },
    async handle({ body, unchanged }) {
      const { toBudget } = await views()
      if (unchanged) return toBudget(service)
      await service.set(
        undefined,
        {
          hourUsd: first(body.hourly_limit_usd, body.max_hourly_usd),
          dayUsd: first(body.daily_limit_usd, body.max_daily_usd),
          monthUsd: first(body.monthly_limit_usd, body.max_monthly_usd),
          alertThreshold: body.alert_threshold,
          defaultHourTokens: body.default_max_llm_tokens_per_hour,
        },
        `budget of all agents: ${describeChange(body)}`,
      )
      return toBudget(service)
    },
  })
}

function rankingRoute({ agents, spending }: BudgetRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/budget/agents',
    summary: 'What each agent spent, highest first',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: AgentRank,
    description: 'Removed agents are included, under their last name; null when it is unknown.',
    async handle() {
      const [ranking, former] = await Promise.all([spending.ranking(), spending.formerNames()])
      return Promise.all(
        ranking.map(async ({ agentId, totalNano, todayNano, monthNano, calls, unpriced }) => ({
          agent_id: agentId,
          agent_name: (await agents.find(agentId))?.name ?? former.get(agentId) ?? null,
          total_cost_usd: toUsd(totalNano),
          today_cost_usd: toUsd(todayNano),
          month_cost_usd: toUsd(monthNano),
          request_count: calls,
          unpriced_requests: unpriced,
        })),
      )
    },
  })
}

function readAgentRoute(deps: BudgetRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/budget/agents/:id',
    summary: 'What an agent may spend, and what it spent',
    auth: 'bearer',
    effect: 'read',
    cost: 3,
    params: AgentParams,
    returns: AgentBudget,
    errors: ['agent_not_found'],
    handle: async ({ params }) => (await views()).toAgentBudget(deps, params.id),
  })
}

function changeAgentRoute(deps: BudgetRouteDeps): AnyRoute {
  const { service, agents } = deps
  return defineRoute({
    method: 'PUT',
    path: '/api/budget/agents/:id',
    summary: 'Set what an agent may spend',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: AgentParams,
    body: AgentBudgetChange,
    shown: async ({ params: { id } }) => ({
      fields: await (await views()).toAgentBudget(deps, id),
      measured: MEASURED,
    }),
    returns: AgentBudget,
    description:
      'Missing fields stay; 0 is unlimited, null uses the manifest. Takes effect at once and survives restarts.',
    errors: ['agent_not_found', 'invalid_request'],
    example: { body: { daily_limit_usd: 1, monthly_limit_usd: 20 } },
    async handle({ params: { id }, body, unchanged }) {
      const { toAgentBudget } = await views()
      if (unchanged) return toAgentBudget(deps, id)
      const agent = await agents.require(id)
      await service.set(
        id,
        {
          hourUsd: first(body.hourly_limit_usd, body.max_cost_per_hour_usd),
          dayUsd: first(body.daily_limit_usd, body.max_cost_per_day_usd),
          monthUsd: first(body.monthly_limit_usd, body.max_cost_per_month_usd),
          hourTokens: body.max_llm_tokens_per_hour,
        },
        `budget of agent ${agent.name}: ${describeChange(body)}`,
      )
      return toAgentBudget(deps, id)
    },
  })
}

/** All but who it is. */
const MEASURED = Object.keys(AgentBudget.entries).filter((name) => name !== 'agent_id' && name !== 'agent_name')
const first = <T>(one: T | undefined, other: T | undefined): T | undefined => (one === undefined ? other : one)
function describeChange(body: Readonly<Record<string, unknown>>): string {
  return Object.entries(body)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} = ${String(value)}`)
    .join(', ')
}
