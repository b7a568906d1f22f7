import * as v from 'valibot'
import { JsonObject } from 'svc/internal'
import { line } from 'svc/sdk'

const text = v.optional(v.nullable(v.string()))
/** A part as compatible services write it; one without `type` is told by what it has. */
export const InputPart = v.looseObject({
  type: text,
  kind: text,
  text,
  /** Base64 of a file. */
  data: v.optional(v.unknown()),
  raw: text,
  url: text,
  name: text,
  filename: text,
  mimeType: text,
  mediaType: text,
})
const InputMessage = v.looseObject({
  role: text,
  parts: v.array(InputPart),
  messageId: text,
  message_id: text,
  contextId: text,
  metadata: v.optional(v.nullable(JsonObject)),
})
const Ids = { agent_id: text, agentId: text, session_id: text, sessionId: text, context_id: text, contextId: text }
/** The interface's form, and that of JSON-RPC which compatible services take. */
export const NewTaskBody = v.pipe(
  v.object({
    ...Ids,
    message: v.optional(InputMessage),
    params: v.optional(v.looseObject({ ...Ids, message: InputMessage })),
  }),
  v.forward(
    v.check(({ message, params }) => message !== undefined || params !== undefined, 'is missing'),
    ['message'],
  ),
  v.forward(
    v.check(({ message, params }) => message === undefined || params === undefined, 'there is a message beside it'),
    ['params'],
  ),
)
export type NewTaskBody = v.InferOutput<typeof NewTaskBody>

export const TaskParams = v.object({ id: line(256) })
export const AgentParams = v.object({ name: line(256) })
export const ListQuery = v.object({
  agent: v.optional(line(256)),
  context_id: v.optional(line(256)),
  status: v.optional(v.picklist(['submitted', 'working', 'completed', 'failed', 'cancelled'])),
  limit: v.optional(
    v.pipe(v.string(), v.regex(/^(?:[1-9]\d?|100)$/, 'must be a whole number from 1 to 100'), v.transform(Number)),
    '50',
  ),
})

const ShownPart = v.looseObject({ type: v.string() })
const ShownMessage = v.object({ role: v.string(), parts: v.array(ShownPart) })
const Artifact = v.object({ name: v.string(), parts: v.array(ShownPart), index: v.number(), lastChunk: v.boolean() })
export const ShownTask = v.object({
  task_id: v.string(),
  id: v.string(),
  agent_id: v.string(),
  context_id: v.string(),
  sessionId: v.string(),
  status: v.picklist(['submitted', 'working', 'completed', 'failed', 'cancelled']),
  /** Why it failed or what it waits for. */
  error: v.nullable(v.string()),
  result: v.nullable(ShownMessage),
  messages: v.array(ShownMessage),
  artifacts: v.array(Artifact),
  created_at: v.string(),
  updated_at: v.string(),
})
export const TaskList = v.object({ tasks: v.array(ShownTask), total: v.number() })
export const TaskMessages = v.object({ task_id: v.string(), messages: v.array(ShownMessage), total: v.number() })

export const Card = v.looseObject({
  name: v.string(),
  description: v.string(),
  url: v.optional(v.string()),
  version: v.string(),
  capabilities: v.looseObject({ streaming: v.boolean(), pushNotifications: v.boolean() }),
  skills: v.array(v.looseObject({ id: v.string(), name: v.string(), description: v.string() })),
})
export const CardList = v.object({ agents: v.array(Card), total: v.number() })
/** For the OpenAPI document: handlers read the bytes themselves. */
export const RpcCall = v.looseObject({
  jsonrpc: v.literal('2.0'),
  id: v.optional(v.nullable(v.union([v.string(), v.number()]))),
  method: v.string(),
  params: v.optional(v.record(v.string(), v.unknown())),
})
export const RpcAnswer = v.looseObject({ jsonrpc: v.literal('2.0'), id: v.nullable(v.union([v.string(), v.number()])) })
