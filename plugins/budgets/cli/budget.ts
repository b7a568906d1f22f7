import * as v from 'valibot'
import { renderTable } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'

const Part = v.looseObject({ spend: v.number(), limit: v.number(), pct: v.number() })
export const Budget = v.looseObject({
  agent_name: v.nullish(v.string()),
  status: v.string(),
  unpriced_requests_today: v.optional(v.number(), 0),
  hourly: Part,
  daily: Part,
  monthly: Part,
  /** Of one agent only. */
  tokens: v.optional(v.looseObject({ used: v.number(), limit: v.number(), pct: v.number() })),
})
export type Budget = v.InferOutput<typeof Budget>

export const agentArg = {
  agent: { type: 'string', valueHint: 'agent', description: 'Of this agent, by name or id (default: all together)' },
} as const

/** Where the budget of all agents or of one is read and set. */
export async function budgetPath(client: DaemonClient, agent: string | undefined): Promise<string> {
  return agent === undefined ? '/api/budget' : `/api/budget/agents/${(await requireAgent(client, agent)).id}`
}

export function renderBudget({ agent_name: name, status, tokens, ...budget }: Budget): string {
  const money = (['hourly', 'daily', 'monthly'] as const).map((key) => {
    const { spend, limit, pct } = budget[key]
    return [periods[key], usd(spend), limit === 0 ? 'unlimited' : usd(limit), limit === 0 ? '' : percent(pct)]
  })
  const counted = tokens && [
    'tokens of this hour',
    String(tokens.used),
    tokens.limit === 0 ? 'unlimited' : String(tokens.limit),
    tokens.limit === 0 ? '' : percent(tokens.pct),
  ]
  const unpriced = budget.unpriced_requests_today
  return [
    `budget of ${name === undefined || name === null ? 'all agents' : `"${name}"`}: ${states[status] ?? status}`,
    renderTable(['PERIOD (UTC)', 'SPENT', 'LIMIT', 'USED'], counted ? [...money, counted] : money),
    ...(unpriced === 0 ? [] : [`${unpriced} calls of today have no known price and are in no sum.`]),
  ].join('\n')
}

const periods = { hourly: 'this hour', daily: 'today', monthly: 'this month' } as const
const states: Readonly<Record<string, string>> = {
  ok: 'within the limits',
  warning: 'close to a limit',
  exceeded: 'a limit is reached',
}
const usd = (amount: number): string => `$${Number(amount.toFixed(6))}`
const percent = (part: number): string => `${Math.round(part * 100)} %`
