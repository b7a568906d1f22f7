import * as v from 'valibot'
import { Refusal } from 'svc/sdk'

const agent = v.optional(v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(256)))
/** Name or id; the first agent when none is given. The interface calls an agent `agent_id` elsewhere, and senders do so here. */
const named = { agent, agent_id: agent, agent_name: agent }
/** The agent a request names. Throws `invalid_request` when it names two. */
export function namedAgent(body: { readonly [K in keyof typeof named]?: string | undefined }): string | undefined {
  const given = [body.agent, body.agent_id, body.agent_name].filter((one) => one !== undefined)
  if (new Set(given).size > 1)
    throw new Refusal('invalid_request', 'agent: agent, agent_id and agent_name say different things; give one of them')
  return given[0]
}

export const Wake = v.object({
  text: v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(4_096)),
  mode: v.optional(v.picklist(['now', 'next_heartbeat']), 'now'),
  ...named,
})
export const Woken = v.object({
  status: v.literal('accepted'),
  mode: v.picklist(['now', 'next_heartbeat']),
  id: v.string(),
  duplicate: v.optional(v.literal(true)),
})

export const AgentCall = v.object({
  message: v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(16_384)),
  ...named,
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
