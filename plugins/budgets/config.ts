import * as v from 'valibot'
import { fileOnly } from 'svc/sdk'

const usd = v.optional(v.pipe(v.number(), v.finite(), v.minValue(0)), 0)
/** `[budget]`. 0 is unlimited. */
const Limits = v.object({
  max_hourly_usd: usd,
  max_daily_usd: usd,
  max_monthly_usd: usd,
  /** Part of a limit at which it is told; 0 never. */
  alert_threshold: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1)), 0.8),
  /** Of an agent whose manifest does not say. */
  default_max_llm_tokens_per_hour: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0)), 0),
  /** What happens to a call whose price nobody knows, while money is limited. */
  unknown_price: v.optional(v.picklist(['allow', 'refuse']), 'allow'),
})
/** What only concerns the works of it, in `[plugins.budgets]`. */
const Works = v.object({
  /** What a call set aside and did not give back, because its process died, counts for so long. Longer than any call takes. */
  reservation_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(86_400)), 900),
})
export const Config = fileOnly(
  'says how long money that is on its way counts',
  v.object({ ...Works.entries, budget: v.optional(Limits, {}) }),
)
export const BudgetConfig = v.object({ ...Limits.entries, ...Works.entries })
export type BudgetConfig = v.InferOutput<typeof BudgetConfig>
