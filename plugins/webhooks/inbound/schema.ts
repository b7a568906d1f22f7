import * as v from 'valibot'

export const Wake = v.object({
  text: v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(4_096)),
  mode: v.optional(v.picklist(['now', 'next_heartbeat']), 'now'),
  /** Name or id; the first agent when absent. */
  agent: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256))),
})
export const Woken = v.object({
  status: v.literal('accepted'),
  mode: v.picklist(['now', 'next_heartbeat']),
  id: v.string(),
  duplicate: v.optional(v.literal(true)),
})

export const AgentCall = v.object({
  message: v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(16_384)),
  agent: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256))),
  deliver: v.optional(v.boolean(), false),
  channel: v.optional(v.pipe(v.string(), v.maxLength(64))),
  model: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256))),
  timeout_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(600)), 120),
})
export const Called = v.object({
  status: v.literal('completed'),
  agent_id: v.string(),
  response: v.string(),
  usage: v.object({ input_tokens: v.number(), output_tokens: v.number() }),
  turn_id: v.string(),
  session_id: v.string(),
  duplicate: v.optional(v.literal(true)),
})
