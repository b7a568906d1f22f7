import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const { integer } = fields
const jobs = (description: string, fallback: number) => integer(description, fallback, 1, 10_000)

/** `[plugins.queue]`. */
export const Settings = fileOnly(
  'bounds what the daemon does at the same time',
  v.object({
    driver: v.optional(
      v.pipe(
        v.picklist(['auto', 'embedded', 'pg-boss']),
        v.description(
          'What keeps the jobs: a table of the queue, or pg-boss on PostgreSQL; auto is pg-boss there. The same in every daemon on a database.',
        ),
      ),
      'auto',
    ),
    connections: integer('Connections to PostgreSQL that pg-boss opens at most.', 2, 1, 100),
    concurrency: v.optional(
      v.pipe(
        v.record(
          v.pipe(v.string(), v.regex(/^[a-z][a-z-]{0,31}$/, 'expected a lane in kebab-case')),
          v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000)),
        ),
        v.description('Jobs of a lane that run side by side in one daemon, by lane; default_concurrency for others.'),
      ),
      {},
    ),
    default_concurrency: jobs('Jobs of any other lane that run side by side.', 8),
    max_depth: integer('Jobs of all lanes that may wait.', 100_000, 1, 10_000_000),
    max_depth_per_agent: integer('Jobs for one agent that may wait.', 1_000, 1, 1_000_000),
    max_failures: integer('Failures after which a job is dead.', 5, 1, 1_000),
    max_losses: integer('Times a job may be lost by a daemon that died before it is dead.', 100, 1, 10_000),
    retry_min_ms: integer('Longest first pause before a failed job runs again, in milliseconds.', 1_000, 1, 600_000),
    retry_max_ms: integer('Longest pause between two attempts, in milliseconds.', 300_000, 1, 86_400_000),
    lease_secs: integer(
      'Seconds after which another daemon takes over a job whose daemon died; pg-boss takes no less than 10.',
      15,
      5,
      3_600,
    ),
    poll_interval_ms: integer(
      'Milliseconds between two searches for jobs that another daemon on the same database added.',
      5_000,
      100,
      600_000,
    ),
    retention_hours: integer('Hours for which ended jobs are kept; dead ones 30 times as long.', 24, 1, 8_760),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
