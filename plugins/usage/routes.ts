import type * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { dayStart, hourStart, nextHour, periodStart } from './period.ts'
import {
  ByAgent,
  ByModel,
  ByProvider,
  Daily,
  DaysQuery,
  GroupQuery,
  PeriodQuery,
  Summary,
  UsageTotal,
} from './schema.ts'
import type { UsageStore } from './store.ts'
import type { UsageSums } from './sums/store.ts'

export interface UsageRouteDeps {
  readonly store: Pick<UsageStore, 'firstDay' | 'formerNames'>
  readonly sums: UsageSums
  readonly now: () => number
  /** Name of an agent, `undefined` when it was removed. */
  /** Of an agent that is there. */
  readonly nameOf: (agentId: string) => Promise<string | undefined>
  /** Tokens that may be used in an hour, `null` without a limit. */
  readonly hourlyQuota: () => Promise<number | null>
}

export function usageRoutes(deps: UsageRouteDeps): readonly AnyRoute[] {
  return [
    totalRoute(deps),
    summaryRoute(deps),
    byModelRoute(deps),
    byProviderRoute(deps),
    byAgentRoute(deps),
    dailyRoute(deps),
  ]
}

function totalRoute({ sums, now }: UsageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/usage',
    summary: 'Tokens and cost of a period',
    description:
      'The period reaches back from now. `total_cost_usd` leaves out the `unpriced_requests`, whose price is ' +
      'unknown; `estimated_requests` were counted here because the provider did not count them.',
    auth: 'bearer',
    effect: 'read',
    cost: 3,
    query: PeriodQuery,
    returns: UsageTotal,
    async handle({ query }) {
      const found = await sums.totals(periodStart(query.period, now()))
      return {
        period: query.period,
        total_input_tokens: found.input_tokens,
        total_output_tokens: found.output_tokens,
        total_cost_usd: usd(found.cost_usd),
        request_count: found.requests,
        active_agents: found.agents,
        unpriced_requests: found.unpriced,
        estimated_requests: found.estimated,
      }
    },
  })
}

function summaryRoute({ sums, now, hourlyQuota }: UsageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/usage/summary',
    summary: 'Use of today (UTC) and of the hour',
    description: '`hourly_token_limit` is the sum of what the agents may use in an hour, null without a limit.',
    auth: 'bearer',
    effect: 'read',
    cost: 3,
    returns: Summary,
    async handle() {
      const at = now()
      const [today, hour, limit] = await Promise.all([
        sums.totals(dayStart(at)),
        sums.totals(hourStart(at)),
        hourlyQuota(),
      ])
      return {
        today: {
          input_tokens: today.input_tokens,
          output_tokens: today.output_tokens,
          cost_usd: usd(today.cost_usd),
          requests: today.requests,
          unpriced_requests: today.unpriced,
        },
        quota: {
          hourly_token_limit: limit,
          hourly_tokens_used: hour.input_tokens + hour.output_tokens,
          hourly_reset_at: nextHour(at),
        },
      }
    },
  })
}

function byModelRoute({ sums, now }: UsageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/usage/by-model',
    summary: 'Use of each model, the most called first',
    auth: 'bearer',
    effect: 'read',
    cost: 3,
    query: GroupQuery,
    returns: ByModel,
    async handle({ query }) {
      return {
        models: (await sums.by(['model', 'provider'], startOf(query, now))).map((row) => ({
          model: row.model,
          provider: row.provider,
          ...group(row),
        })),
      }
    },
  })
}

function byProviderRoute({ sums, now }: UsageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/usage/providers',
    summary: 'Use of each provider, the most called first',
    auth: 'bearer',
    effect: 'read',
    cost: 3,
    query: GroupQuery,
    returns: ByProvider,
    async handle({ query }) {
      return {
        providers: (await sums.by(['provider'], startOf(query, now))).map((row) => ({
          provider: row.provider,
          ...group(row),
        })),
      }
    },
  })
}

function byAgentRoute({ store, sums, nameOf, now }: UsageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/usage/agents',
    summary: 'Use of each agent, the busiest first',
    description: 'Removed agents are included, under their last name; null when it is unknown.',
    auth: 'bearer',
    effect: 'read',
    cost: 3,
    query: GroupQuery,
    returns: ByAgent,
    async handle({ query }) {
      const [rows, former] = await Promise.all([sums.by(['agent_id'], startOf(query, now)), store.formerNames()])
      return {
        agents: await Promise.all(
          rows.map(async (row) => ({
            agent_id: row.agent_id,
            name: (await nameOf(row.agent_id)) ?? former.get(row.agent_id) ?? null,
            total_tokens: row.input_tokens + row.output_tokens,
            ...group(row),
          })),
        ),
      }
    },
  })
}

function dailyRoute({ store, sums, now }: UsageRouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/usage/daily',
    summary: 'Use of each of the last days (UTC), oldest first: seven, or up to 90 with `days`',
    auth: 'bearer',
    effect: 'read',
    cost: 3,
    query: DaysQuery,
    returns: Daily,
    async handle({ query }) {
      const at = now()
      const length = Number(query.days)
      const [rows, first] = await Promise.all([sums.daily(dayStart(at, length - 1)), store.firstDay()])
      const by = new Map(rows.map((row) => [row.date, row]))
      const days = Array.from({ length }, (_, index) => {
        const date = dayStart(at, length - 1 - index).slice(0, 10)
        const row = by.get(date)
        return {
          date,
          cost_usd: usd(row?.cost_usd ?? 0),
          tokens: (row?.input_tokens ?? 0) + (row?.output_tokens ?? 0),
          calls: row?.requests ?? 0,
          unpriced_calls: row?.unpriced ?? 0,
        }
      })
      return { days, today_cost_usd: days.at(-1)?.cost_usd ?? 0, first_event_date: first }
    },
  })
}

/** Where what is asked for begins; before everything when no period is. */
function startOf({ period }: v.InferOutput<typeof GroupQuery>, now: () => number): string {
  return period === undefined ? '' : periodStart(period, now())
}
function group(row: {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost_usd: number
  readonly requests: number
  readonly unpriced: number
}) {
  return {
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cost_usd: usd(row.cost_usd),
    request_count: row.requests,
    unpriced_requests: row.unpriced,
  }
}
/** What the ledger sums is whole in billionths of a dollar. */
const usd = (sum: number): number => Number(sum.toFixed(9))
