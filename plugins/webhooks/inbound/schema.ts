import * as v from 'valibot'

const agentName = v.optional(v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(256)))
/**
 * Name or id; the first agent when none is given. `agent_id` is the name of the field elsewhere, so senders use it
 * here.
 */
const agentFields = { agent: agentName, agent_id: agentName, agent_name: agentName }
export const Wake = v.object({
  text: v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(4_096)),
  mode: v.optional(v.picklist(['now', 'next_heartbeat']), 'now'),
  ...agentFields,
})
export const WakeResult = v.object({
  status: v.literal('accepted'),
  mode: v.picklist(['now', 'next_heartbeat']),
  id: v.string(),
  duplicate: v.optional(v.literal(true)),
})

export const AgentCall = v.object({
  message: v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(16_384)),
  ...agentFields,
  deliver: v.optional(v.boolean(), false),
  channel: v.optional(v.pipe(v.string(), v.maxLength(64), v.description('Of the chat, such as telegram'))),
  recipient: v.optional(v.pipe(v.string(), v.maxLength(512), v.description('Id of the chat on its platform'))),
  account_id: v.optional(v.pipe(v.string(), v.maxLength(64))),
  thread_id: v.optional(v.pipe(v.string(), v.maxLength(512))),
  model: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256))),
  timeout_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(10), v.maxValue(600)), 120),
})
export const AgentCallResult = v.object({
  status: v.literal('completed'),
  agent_id: v.string(),
  response: v.string(),
  usage: v.object({ input_tokens: v.number(), output_tokens: v.number() }),
  turn_id: v.string(),
  session_id: v.string(),
  delivery: v.optional(
    v.object({ status: v.string(), channel: v.string(), recipient: v.string(), error: v.optional(v.string()) }),
  ),
  duplicate: v.optional(v.literal(true)),
})
