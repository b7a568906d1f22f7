import * as v from 'valibot'

/**
 * Money is counted in billionths of a dollar and exact up to this number: a larger limit would be stored as a different
 * one.
 */
const MAX_USD = Math.floor(Number.MAX_SAFE_INTEGER / 1_000_000_000)
const Usd = v.nullable(
  v.pipe(
    v.number('expected a number of USD; 0 is unlimited'),
    v.finite('expected a finite number'),
    v.minValue(0, 'must not be negative; 0 is unlimited'),
    v.maxValue(MAX_USD, `at most ${MAX_USD} USD; 0 is unlimited`),
  ),
)
const Tokens = v.nullable(
  v.pipe(
    v.number('expected a number of tokens; 0 is unlimited'),
    v.integer('expected whole tokens'),
    v.minValue(0, 'must not be negative; 0 is unlimited'),
    v.maxValue(Number.MAX_SAFE_INTEGER),
  ),
)
const optional = <S extends v.GenericSchema>(schema: S) => v.optional(schema)

/** `null` leaves a limit to the configuration. The names of compatible services are accepted too. */
export const BudgetChange = v.pipe(
  v.object({
    hourly_limit_usd: optional(Usd),
    daily_limit_usd: optional(Usd),
    monthly_limit_usd: optional(Usd),
    max_hourly_usd: optional(Usd),
    max_daily_usd: optional(Usd),
    max_monthly_usd: optional(Usd),
    alert_threshold: optional(
      v.nullable(
        v.pipe(v.number(), v.minValue(0, 'expected a part from 0 to 1'), v.maxValue(1, 'expected a part from 0 to 1')),
      ),
    ),
    default_max_llm_tokens_per_hour: optional(Tokens),
  }),
  v.check((body) => Object.keys(body).length > 0, 'give at least one limit, such as daily_limit_usd'),
)
/** `null` leaves a limit to the agent's manifest. */
export const AgentBudgetChange = v.pipe(
  v.object({
    hourly_limit_usd: optional(Usd),
    daily_limit_usd: optional(Usd),
    monthly_limit_usd: optional(Usd),
    max_cost_per_hour_usd: optional(Usd),
    max_cost_per_day_usd: optional(Usd),
    max_cost_per_month_usd: optional(Usd),
    max_llm_tokens_per_hour: optional(Tokens),
  }),
  v.check((body) => Object.keys(body).length > 0, 'give at least one limit, such as daily_limit_usd'),
)

const Part = v.object({ spend: v.number(), limit: v.number(), pct: v.number() })
const Money = {
  /** 0 is unlimited. */
  hourly_limit_usd: v.number(),
  daily_limit_usd: v.number(),
  monthly_limit_usd: v.number(),
  status: v.picklist(['ok', 'warning', 'exceeded']),
  /** Set aside for calls that run. */
  reserved_usd: v.number(),
  /** Calls of today without a known price; no sum here includes them. */
  unpriced_requests_today: v.number(),
  hourly: Part,
  daily: Part,
  monthly: Part,
}
export const Budget = v.object({
  ...Money,
  hour_spent_usd: v.number(),
  today_spent_usd: v.number(),
  month_spent_usd: v.number(),
  alert_threshold: v.number(),
  default_max_llm_tokens_per_hour: v.number(),
})
export const AgentBudget = v.object({
  agent_id: v.string(),
  agent_name: v.nullable(v.string()),
  total_cost_usd: v.number(),
  today_cost_usd: v.number(),
  month_cost_usd: v.number(),
  today_spent_usd: v.number(),
  month_spent_usd: v.number(),
  ...Money,
  tokens: v.object({ used: v.number(), limit: v.number(), pct: v.number(), reserved: v.number() }),
})
export const AgentRank = v.array(
  v.object({
    agent_id: v.string(),
    agent_name: v.nullable(v.string()),
    total_cost_usd: v.number(),
    today_cost_usd: v.number(),
    month_cost_usd: v.number(),
    request_count: v.number(),
    unpriced_requests: v.number(),
  }),
)
