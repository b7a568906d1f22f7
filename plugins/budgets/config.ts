import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const usd = (description: string) =>
  v.optional(v.pipe(v.number(), v.finite(), v.minValue(0), v.description(description)), 0)
/** `[budget]` at the top of the file. */
export const BudgetSection = fields.table(
  'What all agents together may spend; 0 is unlimited. `PUT /api/budget` overrides it, ' +
    'and each agent may have limits of its own.',
  fields.overApi('the owner changes it with PUT /api/budget as well'),
  {
    max_hourly_usd: usd('USD in an hour (UTC).'),
    max_daily_usd: usd('USD in a day (UTC).'),
    max_monthly_usd: usd('USD in a calendar month (UTC).'),
    alert_threshold: v.optional(
      v.pipe(
        v.number(),
        v.minValue(0),
        v.maxValue(1),
        v.description('Part of a limit, from 0 to 1, at which a warning is sent; 0 is never.'),
      ),
      0.8,
    ),
    default_max_llm_tokens_per_hour: fields.integer(
      'Tokens an agent may use in an hour when its manifest sets no limit; 0 is unlimited.',
      0,
      0,
      Number.MAX_SAFE_INTEGER,
    ),
    unknown_price: v.optional(
      v.pipe(
        v.picklist(['allow', 'refuse']),
        v.description('What happens to a call without a known price, for an agent with a limit in money.'),
      ),
      'allow',
    ),
  },
)

/** `[plugins.budgets]`. */
export const Config = fileOnly(
  'says how long money that is on its way counts',
  v.object({
    reservation_secs: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(1),
        v.maxValue(86_400),
        v.description(
          'Seconds until money reserved by a call whose process died counts as free. Set it longer than any call ' +
            'takes.',
        ),
      ),
      900,
    ),
  }),
)
/** Both together. */
export const BudgetConfig = v.object({ ...BudgetSection.entries, ...Config.entries })
export type BudgetConfig = v.InferOutput<typeof BudgetSection> & v.InferOutput<typeof Config>
