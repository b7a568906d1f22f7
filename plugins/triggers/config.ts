import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const { integer } = fields

/** `[plugins.triggers]`. */
export const Settings = fileOnly(
  'bounds how often agents act by themselves',
  v.object({
    max_triggers: integer('Triggers of all agents.', 1_000, 1, 100_000),
    max_triggers_per_agent: integer('Triggers of one agent.', 50, 1, 10_000),
    cooldown_secs: integer(
      'Seconds for which a trigger does not fire again for the same kind of event about the same thing.',
      5,
      0,
      86_400,
    ),
    max_per_event: integer('Triggers that fire for one event, the oldest first.', 10, 1, 1_000),
    max_depth: integer('Triggers in a row of which one causes the event of the next.', 5, 1, 100),
    max_event_chars: integer('Characters of an event that an agent is told.', 4_000, 100, 100_000),
    max_result_chars: integer(
      'Characters of a result that the history keeps; receivers get all.',
      20_000,
      0,
      1_000_000,
    ),
    max_history: integer('Ended firings that the history of a trigger keeps.', 200, 1, 10_000),
    retention_days: integer('Days for which ended firings are kept.', 30, 1, 3_650),
    poll_interval_ms: integer('Milliseconds between looks for events of other daemons.', 1_000, 50, 60_000),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
