import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

/** `[plugins.goals]`. */
export const Settings = fileOnly(
  'bounds what agents put on each other',
  v.object({
    max_goals: fields.integer('Goals of all agents, with their sub-goals.', 10_000, 1, 1_000_000),
    max_depth: fields.integer('Levels of sub-goals below each other, the first one included.', 16, 1, 100),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
