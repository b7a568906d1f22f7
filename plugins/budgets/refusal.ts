import { toUsd } from 'svc/providers'
import { Refusal } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import { periodOf } from './limits.ts'
import type { Line } from './limits.ts'

const WORDS = { hour: 'hourly', day: 'daily', month: 'monthly' } as const
/** A call that needs more than a limit has left, in its unit; `agent`: whose limit it is. */
export function refusal(agent: Agent | undefined, line: Line, needs: number, at: number): Refusal {
  const { period, unit, limit, spent, held } = line
  const amount = (value: number): string => (unit === 'usd' ? dollars(value) : `${value} tokens`)
  const { resetsAt } = periodOf(period, at)
  const what = unit === 'usd' ? 'budget' : 'token limit'
  const payer = agent ? `agent "${agent.name}"` : 'all agents'
  const path = agent ? `/api/budget/agents/${agent.id}` : '/api/budget'
  const rest =
    spent >= limit ? '' : `; this call may take ${amount(needs)}${held > 0 ? ` and running ones ${amount(held)}` : ''}`
  return new Refusal(
    'rate_limit',
    `The ${WORDS[period]} ${what} of ${payer} is used up: ${amount(spent)} of ${amount(limit)}${rest}. ` +
      `It resets at ${resetsAt}; PUT ${path} raises it.`,
    {
      // What only running calls hold may be free again soon.
      retryAfterSecs: spent + needs <= limit ? 5 : Math.max(1, Math.ceil((Date.parse(resetsAt) - at) / 1000)),
      details: {
        budget: {
          agent_id: agent?.id ?? null,
          period,
          unit,
          limit: unit === 'usd' ? toUsd(limit) : limit,
          spent: unit === 'usd' ? toUsd(spent) : spent,
          resets_at: resetsAt,
        },
      },
    },
  )
}
/** A call whose cost cannot be kept within a limit. */
export function unpriced(
  agent: Agent,
  { provider, model }: { readonly provider: string; readonly model: string },
): Refusal {
  return new Refusal(
    'conflict',
    `The price of ${model} by ${provider} is unknown, and the money of agent "${agent.name}" is limited: ` +
      `set [providers.${provider}.prices."${model}"] input and output, ` +
      'choose another model, or set [budget] unknown_price = "allow".',
  )
}

/** Billionths of a dollar for people to read. */
function dollars(nano: number): string {
  const exact = toUsd(nano).toFixed(6)
  // At least two decimals, and no more than needed.
  return `$${exact.replace(/0{1,4}$/, '')}`
}
