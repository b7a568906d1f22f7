import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const { inFile, integer } = fields
const BOUNDS = 'bounds how often agents act by themselves'

/** `[plugins.schedules]`. */
export const Settings = fileOnly(
  BOUNDS,
  v.object({
    max_jobs_per_agent: integer('Schedules and cron jobs of one agent.', 50, 1, 1_000_000),
    max_failures: integer('Consecutive failures after which a job is disabled.', 5, 1, 1_000),
    grace_secs: integer('Seconds for which a slot that comes late is not missed.', 300, 0, 86_400),
    max_skips_recorded: integer(
      'Missed slots of a job that get a record each after a pause; older ones share one.',
      100,
      1,
      10_000,
    ),
    max_result_chars: integer('Characters of a result that its slot keeps; receivers get all.', 20_000, 0, 1_000_000),
    retention_days: integer('Days for which past slots and ended jobs are kept.', 30, 1, 3_650),
    run_wait_secs: integer('Seconds for which "run now" waits for the result.', 600, 1, 3_600),
  }),
)
/** At the top of the file, where compatible services have it. */
export const sections = {
  max_cron_jobs: integer('Schedules and cron jobs of all agents.', 500, 1, 1_000_000, inFile(BOUNDS)),
}
export type Settings = v.InferOutput<typeof Settings> & { readonly max_cron_jobs: number }
