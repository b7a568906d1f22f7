import * as v from 'valibot'
import { DeliveryTarget } from '../result-delivery/contract.ts'
import { HOLD_REASONS } from './reasons.ts'

const optional = v.exactOptional
const id = (description: string) =>
  v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(256), v.description(description))
const uuid = (problem: string) => v.pipe(v.string(), v.uuid(problem), v.toLowerCase())
const whole = (max: number, description: string) =>
  v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(max), v.description(description))
/** Checked by `parsePattern`, which says what is wrong in words. */
const PatternBody = v.union(
  [v.string(), v.record(v.string(), v.unknown())],
  'Expected a pattern such as "lifecycle" or {"agent_spawned": {"name_pattern": "*"}}',
)

/** What may change of a trigger. */
const fields = {
  pattern: optional(v.pipe(PatternBody, v.description('Which events it fires for.'))),
  prompt_template: optional(
    v.pipe(
      v.string(),
      v.trim(),
      v.nonEmpty(),
      v.maxLength(16_384),
      v.description('What the agent is asked; {{event}} is replaced by the event in a sentence.'),
    ),
  ),
  enabled: optional(v.boolean()),
  max_fires: optional(whole(1_000_000_000, 'It is disabled when it fired so often; 0 is no limit.')),
  target_agent_id: v.nullish(id('Id or name of an agent that is asked instead.')),
  cooldown_secs: v.nullish(whole(86_400, 'Instead of plugins.triggers.cooldown_secs.')),
  session_mode: v.nullish(v.pipe(v.picklist(['new', 'persistent']), v.description('The agent’s own when absent.'))),
  workflow_id: v.nullish(
    v.pipe(
      v.string(),
      v.nonEmpty(),
      v.maxLength(256),
      v.description('Id or name of a workflow that runs instead, with the prompt as input.'),
    ),
  ),
  delivery: v.nullish(DeliveryTarget),
  delivery_targets: optional(v.pipe(v.array(DeliveryTarget), v.maxLength(8))),
}
/** A new trigger needs agent_id and pattern; what else is shown and not changed may be sent back. */
export const TriggerBody = v.object({ agent_id: optional(id('Id or name of an agent.')), ...fields })
export type TriggerBody = v.InferOutput<typeof TriggerBody>

export const TriggerParams = v.object({ id: uuid('Invalid trigger ID') })
const number = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
export const ListQuery = v.object({
  agent_id: v.optional(uuid('Invalid agent ID')),
  limit: v.optional(number),
  offset: v.optional(number),
})
export const HistoryQuery = v.object({
  before: v.optional(v.pipe(v.string(), v.regex(/^\d{1,15}$/, 'Expected the position of a firing'))),
  limit: v.optional(number),
})

const orNull = v.nullable(v.string())
export const TriggerView = v.looseObject({
  id: v.string(),
  agent_id: v.string(),
  target_agent_id: orNull,
  pattern: v.record(v.string(), v.record(v.string(), v.string())),
  prompt_template: v.string(),
  enabled: v.boolean(),
  fire_count: v.number(),
  max_fires: v.number(),
  cooldown_secs: v.nullable(v.number()),
  session_mode: orNull,
  workflow_id: orNull,
  delivery_targets: v.array(DeliveryTarget),
  reason: v.pipe(orNull, v.description('Why it is disabled.')),
  last_fired: orNull,
  created_at: v.string(),
  updated_at: v.string(),
})
export const FiringView = v.object({
  id: v.pipe(v.string(), v.description('Of its job in lane trigger too, and of the run of a workflow.')),
  position: v.number(),
  event: v.string(),
  event_id: v.string(),
  text: v.pipe(v.string(), v.description('What the agent is told of the event.')),
  labels: v.pipe(v.array(v.string()), v.description('Where the text comes from.')),
  state: v.picklist(['open', 'done', 'failed', 'held_back', 'cancelled']),
  reason: v.nullable(v.picklist(HOLD_REASONS)),
  detail: orNull,
  depth: v.pipe(v.number(), v.description('2 when another trigger caused the event, and so on.')),
  agent_id: v.string(),
  turn_id: orNull,
  result: orNull,
  error: orNull,
  event_at: v.string(),
  created_at: v.string(),
  ended_at: orNull,
})
