import * as v from 'valibot'
import { LABELS } from './contract.ts'
import type { Message } from './contract.ts'
import { line } from 'svc/sdk'

const LabelName = v.picklist(LABELS)
const labels = v.optional(v.pipe(v.array(LabelName), v.readonly()))
const Block = v.variant('type', [
  v.object({ type: v.literal('text'), text: v.string(), labels }),
  v.object({ type: v.literal('reasoning'), text: v.string() }),
  v.object({
    type: v.literal('image'),
    mime: v.string(),
    base64: v.string(),
    fileId: v.optional(v.string()),
    filename: v.optional(v.string()),
  }),
  v.object({
    type: v.literal('call'),
    id: v.string(),
    tool: v.string(),
    args: v.unknown(),
    replay: v.optional(v.string()),
  }),
  v.object({
    type: v.literal('result'),
    callId: v.string(),
    tool: v.string(),
    text: v.string(),
    failed: v.boolean(),
    labels,
  }),
])
export const MessageRow = v.object({
  turn_seq: v.number(),
  seq: v.number(),
  id: v.string(),
  turn_id: v.string(),
  role: v.picklist(['system', 'user', 'assistant', 'tool']),
  blocks: v.pipe(v.string(), v.parseJson(), v.array(Block)),
  mark: v.nullable(v.picklist(['cancelled', 'interrupted', 'cut'])),
  created_at: v.string(),
  /** Selected only where messages are shown. */
  turn_state: v.optional(v.nullable(v.string())),
  error_code: v.optional(v.nullable(v.string())),
  error: v.optional(v.nullable(v.string())),
  retryable: v.optional(v.nullable(v.number())),
})
export type MessageRow = Omit<v.InferOutput<typeof MessageRow>, 'blocks'> & {
  readonly blocks: Message['blocks']
  /** What was made of it: a row of a tail that is kept is given out many times. */
  message?: Message
}

/** What a session's row records of the stored messages. */
export const MarkRow = v.object({ appended: v.number(), fingerprint: v.number() })

export const SummaryRow = v.object({
  session_id: v.string(),
  last_turn_seq: v.number(),
  last_seq: v.number(),
  id: v.string(),
  text: v.string(),
  labels: v.pipe(v.string(), v.parseJson(), v.array(LabelName)),
  first_message_id: v.string(),
  last_message_id: v.string(),
  message_count: v.number(),
  created_at: v.string(),
  undone_at: v.nullable(v.string()),
})
export type SummaryRow = v.InferOutput<typeof SummaryRow>

export const SessionRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  label: v.nullable(v.string()),
  message_count: v.number(),
  created_at: v.string(),
  /** How the blocks of the first message of the user begin. */
  begins: v.optional(v.nullable(v.string())),
})
export type SessionRow = v.InferOutput<typeof SessionRow>

export const ActivityRow = v.object({ id: v.string(), agent_id: v.string(), active_at: v.string() })
export type ActivityRow = v.InferOutput<typeof ActivityRow>

const uuid = v.pipe(v.string(), v.uuid('Invalid session ID'), v.toLowerCase())
export const SessionParams = v.object({ id: uuid })
export const AgentSessionParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid agent ID')), session_id: uuid })

/** Query text to a whole number within bounds. */
const limit = v.pipe(
  v.string(),
  v.regex(/^\d{1,4}$/, 'Expected a whole number'),
  v.transform(Number),
  v.minValue(1, 'Expected at least 1'),
  v.maxValue(1000, 'Expected at most 1000'),
)
export const PageQuery = v.object({
  limit: v.optional(limit, '100'),
  before: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(100))),
})

export const Label = line(200)
export const NewSession = v.optional(v.object({ label: v.optional(v.nullable(Label), null) }), {})
export const LabelParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid agent ID')), label: Label })
/** Without the field it is unclear whether to keep or to remove the label. */
export const NewLabel = v.object({ label: v.nullable(Label) })
export const Labelled = v.object({
  status: v.literal('updated'),
  session_id: v.string(),
  label: v.nullable(v.string()),
})
export const FoundSession = v.object({
  session_id: v.string(),
  agent_id: v.string(),
  label: v.string(),
  message_count: v.number(),
  created_at: v.string(),
  active: v.boolean(),
})
export const Cleaned = v.object({ sessions_deleted: v.number() })
export const CreatedSession = v.object({ session_id: v.string(), label: v.nullable(v.string()) })

const ToolView = v.object({
  id: v.string(),
  name: v.string(),
  input: v.unknown(),
  running: v.boolean(),
  expanded: v.boolean(),
  result: v.nullable(v.string()),
  is_error: v.boolean(),
})
export const MessageView = v.object({
  id: v.string(),
  role: v.picklist(['User', 'Assistant', 'System']),
  content: v.string(),
  created_at: v.string(),
  turn_id: v.string(),
  mark: v.optional(v.picklist(['cancelled', 'interrupted', 'cut'])),
  /** What the model thought before this. */
  thinking: v.optional(v.string()),
  /** Of a message whose turn failed: no model is given it again unless it is retried. */
  failed: v.optional(v.literal(true)),
  error: v.optional(v.object({ code: v.string(), message: v.string(), retryable: v.boolean() })),
  tools: v.optional(v.array(ToolView)),
  images: v.optional(v.array(v.object({ file_id: v.optional(v.string()), filename: v.string(), mime: v.string() }))),
})
export type MessageView = v.InferOutput<typeof MessageView>
export const SessionView = v.object({
  session_id: v.string(),
  agent_id: v.string(),
  message_count: v.number(),
  context_window_tokens: v.number(),
  label: v.nullable(v.string()),
  title: v.string(),
  created_at: v.nullable(v.string()),
  active: v.boolean(),
  /** What the model reads instead of the older messages. */
  compacted_summary: v.nullable(v.string()),
  summarized_messages: v.number(),
  context: v.optional(
    v.object({
      window: v.number(),
      system: v.number(),
      memory: v.number(),
      tools: v.number(),
      history: v.number(),
      answer: v.number(),
      used: v.number(),
      pressure: v.string(),
    }),
  ),
  /** Whether messages are shown before the first one of these. */
  has_earlier: v.boolean(),
  messages: v.array(MessageView),
})
export const SessionItem = v.object({
  id: v.string(),
  title: v.string(),
  agent_id: v.string(),
  agent_name: v.nullable(v.string()),
  message_count: v.number(),
  created_at: v.string(),
  label: v.nullable(v.string()),
  active: v.boolean(),
})
export const SessionList = v.object({ sessions: v.array(SessionItem) })
export const AgentSessionList = v.object({
  sessions: v.array(v.object({ ...SessionItem.entries, session_id: v.string() })),
})
export const Reset = v.object({ status: v.literal('reset'), agent_id: v.string(), new_session_id: v.string() })
export const Done = v.object({ status: v.literal('ok'), message: v.string() })
export const Switched = v.object({ ...Done.entries, session_id: v.string() })
export const Deleted = v.object({ status: v.literal('deleted'), session_id: v.string() })
