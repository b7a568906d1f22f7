import * as v from 'valibot'
import { DeliveryTarget } from '../result-delivery/contract.ts'
import { SKIP_REASONS } from './reasons.ts'

const text = (max: number, description: string) =>
  v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(max), v.description(description))
const MAX_PROMPT = 16_384
const MAX_WORKFLOW_SECS = 7 * 86_400
const optional = v.exactOptional
const maybe = <S extends v.GenericSchema>(schema: S) => v.nullish(schema)

const prompt = text(MAX_PROMPT, 'What the agent is asked.')
const ScheduleObject = v.variant('kind', [
  v.strictObject({ kind: v.literal('cron'), expr: v.string(), tz: v.nullish(v.string()) }),
  v.strictObject({ kind: v.literal('every'), every_secs: v.number() }),
  v.strictObject({
    kind: v.literal('at'),
    at: v.pipe(v.string(), v.isoTimestamp('Expected a time such as 2026-01-31T09:00:00Z')),
  }),
])
const ActionObject = v.variant('kind', [
  v.strictObject({
    kind: v.literal('agent_turn'),
    message: prompt,
    model_override: v.nullish(text(256, 'A model instead of the agent’s.')),
    timeout_secs: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(600))),
  }),
  v.strictObject({ kind: v.literal('system_event'), text: text(4_096, 'The text of the event.') }),
  v.strictObject({
    kind: v.literal('workflow'),
    workflow_id: text(256, 'Id or name of a workflow.'),
    input: v.nullish(v.pipe(v.string(), v.maxLength(MAX_PROMPT))),
    timeout_secs: v.nullish(v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(MAX_WORKFLOW_SECS))),
  }),
])

/** Fields of schedules and of cron jobs, in both spellings. Which are required depends on the route. */
export const JobFields = v.object({
  name: optional(
    v.pipe(
      v.string(),
      v.trim(),
      v.nonEmpty(),
      v.maxLength(128),
      // No pattern: not every reader of the OpenAPI document knows letters beyond ASCII.
      v.check((name) => /^[\p{L}\p{N} _-]+$/u.test(name), 'Expected letters, digits, spaces, hyphens and underscores'),
      v.description('Letters, digits, spaces, hyphens and underscores. Made from the prompt when absent.'),
    ),
  ),
  agent_id: optional(text(256, 'Id or name of an agent.')),
  cron: optional(v.pipe(v.string(), v.description('Cron expression of five fields.'))),
  schedule: optional(
    v.union(
      [v.string(), ScheduleObject],
      'Expected a cron expression, {kind: "every", every_secs} or {kind: "at", at}',
    ),
  ),
  phrase: optional(
    v.pipe(v.string(), v.description('Instead of cron: words such as "every 10 minutes" or "weekdays at 18:30".')),
  ),
  tz: maybe(v.pipe(v.string(), v.description('IANA time zone of the cron expression; UTC when absent.'))),
  prompt: optional(prompt),
  message: optional(v.pipe(prompt, v.description('The same as prompt.'))),
  action: optional(ActionObject),
  workflow_id: maybe(text(256, 'Id or name of a workflow to run; the prompt is its input then.')),
  enabled: optional(v.boolean()),
  delivery: maybe(DeliveryTarget),
  delivery_targets: optional(v.pipe(v.array(DeliveryTarget), v.maxLength(8))),
  missed: optional(
    v.pipe(v.picklist(['skip', 'once']), v.description('Whether one run makes up for slots that nobody could run.')),
  ),
  one_shot: optional(v.pipe(v.boolean(), v.description('Ends after the first success.'))),
  session_mode: maybe(v.pipe(v.picklist(['new', 'persistent']), v.description('The agent’s own when absent.'))),
})
/** The same for a new job; with a PUT, what is shown and not changed may be sent back. */
export const JobBody = v.strictObject(JobFields.entries)
export type JobBody = v.InferOutput<typeof JobBody>

export const ScheduleParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid schedule ID'), v.toLowerCase()) })
export const CronParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid cron job ID'), v.toLowerCase()) })
const whole = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
export const ListQuery = v.object({
  agent_id: v.optional(v.pipe(v.string(), v.uuid('Invalid agent ID'), v.toLowerCase())),
  enabled: v.optional(v.picklist(['true', 'false'])),
  ended: v.optional(v.pipe(v.picklist(['true', 'false']), v.description('Also those that have ended.'))),
  limit: v.optional(whole),
  offset: v.optional(whole),
})
export const SlotsQuery = v.object({
  before: v.optional(v.pipe(v.string(), v.isoTimestamp('Expected a time such as 2026-01-31T09:00:00Z'))),
  limit: v.optional(whole),
})
export const EnableBody = v.object({ enabled: v.boolean() })

const orNull = v.nullable(v.string())
export const ScheduleView = v.looseObject({
  id: v.string(),
  name: v.string(),
  agent_id: v.string(),
  cron: orNull,
  tz: orNull,
  prompt: v.string(),
  message: v.string(),
  enabled: v.boolean(),
  created_at: v.string(),
  updated_at: v.string(),
  last_run: orNull,
  next_run: orNull,
  last_status: orNull,
  consecutive_errors: v.number(),
  delivery_targets: v.array(DeliveryTarget),
})
export const CronView = v.looseObject({
  id: v.string(),
  name: v.string(),
  agent_id: v.string(),
  schedule: v.union([v.string(), v.looseObject({ kind: v.string() })]),
  prompt: v.string(),
  action: v.looseObject({ kind: v.string() }),
  delivery: DeliveryTarget,
  enabled: v.boolean(),
  one_shot: v.boolean(),
  created_at: v.string(),
  last_run: orNull,
  next_run: orNull,
})
export const SlotView = v.object({
  slot: v.string(),
  until: v.pipe(orNull, v.description('It stands for all skipped slots up to this time.')),
  kind: v.picklist(['slot', 'manual']),
  state: v.picklist(['open', 'done', 'failed', 'skipped', 'cancelled']),
  reason: v.nullable(v.picklist(SKIP_REASONS)),
  detail: orNull,
  late_ms: v.number(),
  turn_id: orNull,
  workflow_run_id: orNull,
  result: orNull,
  error: orNull,
  created_at: v.string(),
  ended_at: orNull,
})
