import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const { integer } = fields

/** `[plugins.tasks]`. */
export const Limits = fileOnly(
  'bounds what agents put on each other',
  v.object({
    claim_ttl_secs: integer('Seconds an agent may work on a task before another one may claim it.', 600, 1, 604_800),
    max_attempts: integer('Claims of a task that was never finished after which it has failed.', 3, 1, 100),
    retention_days: integer('Days for which finished tasks are kept; 0 keeps them.', 7, 0, 3650),
    max_open: integer('Tasks that may wait or be worked on at the same time.', 10_000, 1, 1_000_000),
    max_open_per_agent: integer('The same of the tasks that one agent posted.', 1_000, 1, 1_000_000),
    max_claimed_per_agent: integer('Tasks that one agent may work on at the same time.', 20, 1, 10_000),
    max_text_chars: integer('Characters of a description, and of a result.', 65_536, 256, 1_048_576),
    sweep_interval_secs: integer('Seconds between two searches for claims and tasks that are too old.', 30, 1, 3600),
  }),
)
export type Limits = v.InferOutput<typeof Limits>
