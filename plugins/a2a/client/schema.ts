import * as v from 'valibot'
import { secret } from 'svc/sdk'

const text = (max: number) => v.pipe(v.string(), v.maxLength(max))
const url = v.pipe(v.string(), v.trim(), v.nonEmpty('expected the address of an agent'), v.maxLength(2_048))
const id = v.pipe(v.string(), v.nonEmpty(), v.maxLength(512))

export const AgentParams = v.object({ id: v.pipe(v.string(), v.nonEmpty(), v.maxLength(2_048)) })
export const TaskParams = v.object({ id })
export const TaskQuery = v.object({
  url: v.optional(v.pipe(url, v.description('The agent, if several have a task with this id.'))),
})
function digits(max: number) {
  const expected = `a whole number, at most ${max}`
  return v.pipe(v.string(), v.regex(/^\d{1,6}$/, expected), v.transform(Number), v.maxValue(max, expected))
}
export const TaskListQuery = v.object({
  limit: v.optional(digits(500), '50'),
  offset: v.optional(digits(999_999), '0'),
})
export const DiscoverBody = v.object({
  url: v.pipe(url, v.description('Address of the agent: that of its card, or the one above /.well-known/.')),
  name: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\w][\w .-]{0,63}$/, 'letters, digits, blanks, dots and hyphens, at most 64 characters'),
      v.description('What it is called here; the name in its card when absent.'),
    ),
  ),
})
export const ApproveBody = v.optional(
  v.object({
    fingerprint: v.optional(
      v.pipe(text(64), v.description('That of the card you were shown: refused if it is another one by now.')),
    ),
  }),
)
export const CredentialBody = v.object({
  secret: secret(v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,4096}$/, 'expected one line of visible ASCII characters'))),
  header: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, 'expected the name of a header'),
      v.description('Header that it is sent in; `Authorization: Bearer` when absent.'),
    ),
  ),
})
const Message = v.union(
  [v.string(), v.looseObject({ parts: v.array(v.looseObject({ text: v.optional(v.string()) })) })],
  'expected a text, or an object with parts',
)
export const SendBody = v.object({
  agent_id: v.optional(v.pipe(url, v.description('Id, name or address of an agent that is trusted.'))),
  url: v.optional(v.pipe(url, v.description('Its address, in place of agent_id.'))),
  message: Message,
  context: v.optional(v.pipe(text(512), v.description('Conversation on the other side that it continues.'))),
  session_id: v.optional(v.pipe(text(512), v.description('The same as context.'))),
  task_id: v.optional(v.pipe(id, v.description('Task on the other side that waits for an answer.'))),
})
export type SendBody = v.InferOutput<typeof SendBody>

const Endpoint = v.looseObject({ url: v.string(), protocol: v.string(), version: v.string() })
const Skill = v.looseObject({
  id: v.string(),
  name: v.string(),
  description: v.string(),
  tags: v.array(v.string()),
})
const Signature = v.looseObject({ state: v.string(), keys: v.array(v.string()) })
export const AgentView = v.looseObject({
  id: v.string(),
  name: v.string(),
  url: v.string(),
  description: v.string(),
  version: v.string(),
  provider: v.string(),
  status: v.picklist(['pending', 'trusted']),
  source: v.picklist(['api', 'file']),
  skills: v.array(Skill),
  endpoints: v.array(Endpoint),
  security: v.array(v.string()),
  capabilities: v.looseObject({ streaming: v.boolean(), pushNotifications: v.boolean() }),
  signature: Signature,
  warnings: v.array(v.string()),
  fingerprint: v.nullable(v.string()),
  difference: v.array(v.looseObject({ field: v.string(), before: v.unknown(), after: v.unknown() })),
  discovered_by: v.nullable(v.string()),
  discovered_at: v.string(),
  checked_at: v.nullable(v.string()),
  trusted_at: v.nullable(v.string()),
})
export const AgentList = v.object({ agents: v.array(AgentView), total: v.number() })
export const Discovered = v.looseObject({
  url: v.string(),
  status: v.picklist(['pending', 'trusted']),
  agent: AgentView,
  message: v.string(),
})
const Result = v.nullable(
  v.looseObject({ role: v.string(), parts: v.array(v.looseObject({ type: v.string(), text: v.string() })) }),
)
export const TaskView = v.looseObject({
  id: v.string(),
  task_id: v.string(),
  status: v.string(),
  result: Result,
  error: v.nullable(v.string()),
  agent_id: v.string(),
  agent_name: v.string(),
  url: v.string(),
  session_id: v.nullable(v.string()),
  message: v.string(),
  asked_by: v.nullable(v.string()),
  created_at: v.string(),
  updated_at: v.string(),
})
export const TaskList = v.object({ tasks: v.array(TaskView), total: v.number() })
