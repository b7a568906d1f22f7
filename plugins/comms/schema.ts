import * as v from 'valibot'

export const KINDS = [
  'agent_message',
  'agent_spawned',
  'agent_terminated',
  'task_posted',
  'task_claimed',
  'task_completed',
] as const

export const CommsEvent = v.object({
  id: v.string(),
  timestamp: v.string(),
  kind: v.picklist(KINDS),
  source_id: v.pipe(v.string(), v.description('Id of the agent; empty when a person or program did it.')),
  source_name: v.string(),
  target_id: v.string(),
  target_name: v.string(),
  detail: v.pipe(v.string(), v.description('At most 200 characters.')),
})
export type CommsEvent = v.InferOutput<typeof CommsEvent>

const whole = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
export const EventsQuery = v.object({
  limit: v.optional(v.pipe(whole, v.description('100 unless given, at most 500.'))),
})

const who = (description: string) =>
  v.exactOptional(v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(512), v.description(description)))
const agentId = v.exactOptional(v.pipe(v.string(), v.uuid('Invalid agent ID'), v.toLowerCase()))
const text = v.pipe(v.string(), v.nonEmpty())
export const SendBody = v.object({
  to: who('`agent:<id or name>`, the same without `agent:`, or `channel:<name>:<chat>`.'),
  content: v.exactOptional(text),
  from: who('Id or name of the agent whose message it is; that of the caller when absent.'),
  to_agent_id: agentId,
  from_agent_id: agentId,
  message: v.exactOptional(v.pipe(text, v.description('The same as content.'))),
  thread_id: v.nullish(
    v.pipe(v.string(), v.maxLength(256), v.description('Of the conversation of two agents, or of the chat.')),
  ),
  attachments: v.nullish(v.pipe(v.array(v.unknown()), v.description('Empty: messages are text only.'))),
})
export type SendBody = v.InferOutput<typeof SendBody>
export const Sent = v.object({
  ok: v.literal(true),
  message_id: v.string(),
  response: v.exactOptional(v.string()),
  input_tokens: v.exactOptional(v.number()),
  output_tokens: v.exactOptional(v.number()),
  session_id: v.exactOptional(v.string()),
})
export type Sent = v.InferOutput<typeof Sent>

export const TaskBody = v.object({
  title: v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(512)),
  description: v.optional(v.string(), ''),
  assigned_to: v.nullish(v.pipe(v.string(), v.maxLength(256), v.description('Id or name; any agent when absent.'))),
})
export const TaskPosted = v.object({ ok: v.literal(true), task_id: v.string() })

export const Topology = v.object({
  nodes: v.array(v.object({ id: v.string(), name: v.string(), state: v.string(), model: v.string() })),
  edges: v.array(v.object({ from: v.string(), to: v.string(), kind: v.picklist(['parent_child', 'peer']) })),
})
export type Topology = v.InferOutput<typeof Topology>
