import * as v from 'valibot'
import { fileOnly } from 'svc/sdk'

const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(1), v.description(description))
export const SecurityConfig = fileOnly(
  'says how soon a guard that fails is noticed',
  v.object({
    probe_interval_ms: v.optional(count('Milliseconds between two runs of all probes.'), 60_000),
    on_demand_ms: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.description('Milliseconds for which the last run answers a request without a new one.'),
      ),
      10_000,
    ),
    probe_timeout_ms: v.optional(
      count('Milliseconds a probe has to end; a late one is tried once more with five times as long before it fails.'),
      2_000,
    ),
    stale_ms: v.optional(count('Milliseconds after which a result counts as unknown.'), 180_000),
    first_probe_ms: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.description('Milliseconds between the open port and the first run, which would slow down the start.'),
      ),
      2_000,
    ),
  }),
)
export type SecurityConfig = v.InferOutput<typeof SecurityConfig>

const Status = v.picklist(['active', 'degraded', 'failed', 'unknown'])
export type Status = v.InferOutput<typeof Status>
const instant = v.nullable(v.string())

export const SecurityStatus = v.object({
  security_systems: v.record(v.string(), Status),
  /** Systems that were really tried in the last run. */
  total_systems: v.pipe(v.number(), v.integer()),
  all_active: v.boolean(),
  checked_at: instant,
  probes: v.record(
    v.string(),
    v.object({
      checked_at: instant,
      duration_ms: v.number(),
      /** Inputs that were tried. */
      cases: v.pipe(v.number(), v.integer()),
      /** Those that did not go as they must. */
      failures: v.array(v.string()),
      evidence: v.string(),
      /** Real refusals since `counting_since`; those of the probes are not among them. */
      enforcement_count: v.pipe(v.number(), v.integer()),
      last_blocked_at: instant,
    }),
  ),
  counting_since: v.string(),
})
export type SecurityStatus = v.InferOutput<typeof SecurityStatus>
