import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const { flag, integer } = fields

/** `[plugins.tasks]`. */
export const Limits = fileOnly(
  'bounds what agents put on each other',
  v.object({
    claim_ttl_secs: integer('Seconds an agent may work on a task before another one may claim it.', 600, 1, 604_800),
    max_attempts: integer('Claims of a task that was never finished after which it has failed.', 3, 1, 100),
    retention_days: integer('Days for which finished tasks are kept; 0 keeps them.', 7, 0, 3650),
    max_open: integer('Tasks that may wait or be worked on at the same time.', 10_000, 1, 1_000_000),
    max_open_per_agent: integer('The same of the tasks that one agent posted.', 200, 1, 1_000_000),
    max_claimed_per_agent: integer('Tasks that one agent may work on at the same time.', 20, 1, 10_000),
    max_text_chars: integer('Characters of a description, and of a result.', 65_536, 256, 1_048_576),
    wake_assignee: flag('Begin a turn of the agent that a task is for, whose answer is the result.', {}, true),
    wake_retry_secs: integer(
      'Seconds after which such a turn is tried again when the agent is not running, or the first one failed; ' +
        'doubled with each failure.',
      60,
      1,
      86_400,
    ),
    wake_retry_max_secs: integer('Longest such pause.', 900, 1, 86_400),
    max_depth: integer('Tasks in a row of which each was posted by a turn that works on the one before.', 5, 1, 100),
    sweep_interval_secs: integer('Seconds between two searches for claims and tasks that are too old.', 30, 1, 3600),
  }),
)
export type Limits = v.InferOutput<typeof Limits>
