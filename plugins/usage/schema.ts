import * as v from 'valibot'

const Count = v.pipe(v.number(), v.integer())
/** USD. Only what has a known price: see `unpriced_requests`. */
const Cost = v.number()

const Period = v.picklist(['hour', 'day', 'week', 'month'])
export const PeriodQuery = v.object({ period: v.optional(Period, 'day') })
export const GroupQuery = v.object({
  period: v.optional(v.pipe(Period, v.description('Only what was used in it; all there ever was when it is absent.'))),
})
const isShownDays = (days: string): boolean => /^\d{1,2}$/.test(days) && Number(days) >= 1 && Number(days) <= 90
export const DaysQuery = v.object({
  days: v.optional(v.pipe(v.string(), v.check(isShownDays, 'Expected a whole number from 1 to 90')), '7'),
})
export type Period = v.InferOutput<typeof PeriodQuery>['period']

export const UsageTotal = v.object({
  period: v.picklist(['hour', 'day', 'week', 'month']),
  total_input_tokens: Count,
  total_output_tokens: Count,
  total_cost_usd: Cost,
  request_count: Count,
  active_agents: Count,
  unpriced_requests: Count,
  estimated_requests: Count,
})

export const Summary = v.object({
  today: v.object({
    input_tokens: Count,
    output_tokens: Count,
    cost_usd: Cost,
    requests: Count,
    unpriced_requests: Count,
  }),
  quota: v.object({ hourly_token_limit: v.nullable(Count), hourly_tokens_used: Count, hourly_reset_at: v.string() }),
})

const Group = {
  input_tokens: Count,
  output_tokens: Count,
  cost_usd: Cost,
  request_count: Count,
  unpriced_requests: Count,
}
export const ByModel = v.object({ models: v.array(v.object({ model: v.string(), provider: v.string(), ...Group })) })
export const ByProvider = v.object({ providers: v.array(v.object({ provider: v.string(), ...Group })) })
export const ByAgent = v.object({
  agents: v.array(v.object({ agent_id: v.string(), name: v.nullable(v.string()), total_tokens: Count, ...Group })),
})
export const Daily = v.object({
  days: v.array(v.object({ date: v.string(), cost_usd: Cost, tokens: Count, calls: Count, unpriced_calls: Count })),
  today_cost_usd: Cost,
  first_event_date: v.nullable(v.string()),
})
