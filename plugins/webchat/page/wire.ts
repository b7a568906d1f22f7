import * as v from 'valibot'

/** What an agent shows. `frame_url` ends after some minutes. */
export const Canvas = v.object({ canvas_id: v.string(), title: v.string(), frame_url: v.string() })
export type Canvas = v.InferOutput<typeof Canvas>

/** A memory that an answer was given with. */
const UsedMemory = v.object({ id: v.string(), content: v.string(), source: v.string(), created_at: v.string() })
export type UsedMemory = v.InferOutput<typeof UsedMemory>
export const UsedMemoryList = v.object({ memories: v.array(UsedMemory), forgotten: v.number() })
export const MemoryCounts = v.object({ turns: v.array(v.object({ turn_id: v.string(), memories: v.number() })) })

export const AgentSummary = v.object({
  id: v.string(),
  name: v.string(),
  state: v.string(),
  model_provider: v.string(),
  model_name: v.string(),
})
export type AgentSummary = v.InferOutput<typeof AgentSummary>
export const AgentList = v.array(AgentSummary)

const ToolRecord = v.object({
  name: v.string(),
  input: v.optional(v.unknown()),
  result: v.optional(v.nullable(v.string())),
  is_error: v.optional(v.boolean()),
})
const SessionMessage = v.object({
  id: v.optional(v.string()),
  role: v.string(),
  content: v.string(),
  tools: v.optional(v.array(ToolRecord)),
  mark: v.optional(v.nullable(v.string())),
  turn_id: v.optional(v.string()),
  created_at: v.optional(v.string()),
  thinking: v.optional(v.nullable(v.string())),
  failed: v.optional(v.boolean()),
  error: v.optional(v.nullable(v.object({ message: v.string(), retryable: v.optional(v.boolean(), true) }))),
})
export const SessionView = v.object({
  session_id: v.string(),
  active: v.optional(v.boolean(), true),
  message_count: v.number(),
  created_at: v.optional(v.nullable(v.string())),
  has_earlier: v.boolean(),
  messages: v.array(SessionMessage),
})
export type SessionMessage = v.InferOutput<typeof SessionMessage>
export type SessionView = v.InferOutput<typeof SessionView>

const SessionItem = v.object({
  id: v.string(),
  label: v.nullable(v.string()),
  title: v.optional(v.string(), ''),
  message_count: v.number(),
  created_at: v.string(),
  active: v.boolean(),
})
export type SessionItem = v.InferOutput<typeof SessionItem>
export const Uploaded = v.object({ file_id: v.string(), filename: v.string() })
/** Of a new or a branched one. */
export const CreatedSession = v.object({ session_id: v.string() })
const FoundMessage = v.object({
  session_id: v.string(),
  agent_id: v.string(),
  label: v.nullable(v.string()),
  message_id: v.string(),
  role: v.string(),
  created_at: v.string(),
  snippet: v.string(),
})
export type FoundMessage = v.InferOutput<typeof FoundMessage>
/** `complete`: whether all messages were looked at. */
export const FoundMessages = v.object({ results: v.array(FoundMessage), complete: v.boolean() })
export type FoundMessages = v.InferOutput<typeof FoundMessages>
/** What is exported: also the fields that this page does not know. */
export const WholeSession = v.looseObject({
  title: v.optional(v.string(), ''),
  created_at: v.optional(v.nullable(v.string()), null),
  messages: v.array(
    v.looseObject({
      id: v.string(),
      role: v.string(),
      content: v.string(),
      created_at: v.string(),
      tools: v.optional(v.array(v.looseObject({ name: v.string() }))),
      error: v.optional(v.nullable(v.object({ message: v.string() }))),
    }),
  ),
})
export type WholeSession = v.InferOutput<typeof WholeSession>
export const SessionPage = v.object({ sessions: v.array(SessionItem) })

const FormField = v.object({
  name: v.string(),
  kind: v.string(),
  title: v.string(),
  description: v.string(),
  required: v.boolean(),
  options: v.optional(v.array(v.object({ value: v.string(), title: v.string() })), []),
  format: v.optional(v.string()),
  minimum: v.optional(v.number()),
  maximum: v.optional(v.number()),
  default: v.optional(v.union([v.string(), v.number(), v.boolean(), v.array(v.string())])),
})
export type FormField = v.InferOutput<typeof FormField>
const Approval = v.object({
  id: v.string(),
  agent_id: v.string(),
  agent_name: v.string(),
  tool_name: v.string(),
  description: v.string(),
  action_summary: v.string(),
  /** `null` where it is too large for a list. */
  payload: v.unknown(),
  risk_level: v.string(),
  expires_at: v.string(),
  status: v.string(),
  intent: v.optional(v.string(), ''),
  scopes: v.optional(v.array(v.string()), ['once']),
  session_covers: v.optional(v.nullable(v.string()), null),
  approvals_needed: v.optional(v.number(), 1),
  first_approved_by: v.optional(v.nullable(v.string()), null),
  escalated_to: v.optional(v.array(v.object({ channel: v.string(), to: v.string() })), []),
  form: v.optional(v.nullable(v.object({ title: v.nullable(v.string()), fields: v.array(FormField) })), null),
})
export type Approval = v.InferOutput<typeof Approval>
export { Approval as ApprovalView }
export const ApprovalPage = v.object({ approvals: v.array(Approval) })

const Grant = v.object({
  id: v.string(),
  agent_id: v.string(),
  session_id: v.string(),
  tool_name: v.string(),
  covers: v.string(),
  uses: v.number(),
})
export type Grant = v.InferOutput<typeof Grant>
export const GrantPage = v.object({ grants: v.array(Grant) })

export const Status = v.object({
  default_provider: v.string(),
  default_model: v.string(),
  default_problem: v.optional(v.nullable(v.string()), null),
  command: v.optional(v.string(), 'svc'),
})
export type Status = v.InferOutput<typeof Status>
const SlashCommand = v.object({
  name: v.string(),
  description: v.string(),
  aliases: v.optional(v.array(v.string()), []),
})
export type SlashCommand = v.InferOutput<typeof SlashCommand>
export const CommandPage = v.object({ commands: v.array(SlashCommand) })
export const CommandAnswer = v.object({ content: v.string(), turn_id: v.optional(v.string()) })
export type CommandAnswer = v.InferOutput<typeof CommandAnswer>

const Turn = v.object({ turn_id: v.string(), state: v.string(), ahead: v.optional(v.array(v.string()), []) })
export type Turn = v.InferOutput<typeof Turn>
export const EndedTurn = v.object({
  state: v.string(),
  error: v.optional(v.nullable(v.string())),
  iterations: v.number(),
  usage: v.nullable(v.object({ input_tokens: v.number(), output_tokens: v.number() })),
  cost_usd: v.nullable(v.number()),
  provider: v.optional(v.nullable(v.string())),
  model: v.optional(v.nullable(v.string())),
})
export type EndedTurn = v.InferOutput<typeof EndedTurn>
export const TurnPage = v.object({ turns: v.array(Turn) })

/** What this page says over the socket. */
export type ClientFrame =
  | {
      readonly type: 'message'
      readonly content: string
      /** The active session without it. */
      readonly session_id?: string
      readonly attachments?: readonly { readonly file_id: string }[]
    }
  | { readonly type: 'ping' }

const tokens = v.optional(v.number(), 0)
const Connected = v.object({ type: v.literal('connected') })
const Thinking = v.object({ type: v.literal('thinking'), turn_id: v.optional(v.string()) })
const ThinkingDelta = v.object({ type: v.literal('thinking_delta'), content: v.string() })
/** What the answer waits for. */
const Phase = v.object({
  type: v.literal('phase'),
  phase: v.string(),
  detail: v.optional(v.string(), ''),
  retry_at: v.optional(v.nullable(v.string())),
  attempt: v.optional(v.nullable(v.number())),
})
const TextDelta = v.object({ type: v.literal('text_delta'), content: v.string() })
const ToolStart = v.object({ type: v.literal('tool_start'), tool: v.string(), id: v.optional(v.string()) })
/** Beyond Interface 6.1, which names the start of a call only. */
const ToolEnd = v.object({
  type: v.picklist(['tool_end', 'tool_result']),
  tool: v.string(),
  id: v.optional(v.string()),
  input: v.optional(v.unknown()),
  result: v.optional(v.nullable(v.string())),
  is_error: v.optional(v.boolean()),
})
const Response = v.object({
  type: v.literal('response'),
  content: v.optional(v.string(), ''),
  input_tokens: tokens,
  output_tokens: tokens,
  iterations: v.optional(v.number()),
  cost_usd: v.optional(v.nullable(v.number())),
  provider: v.optional(v.string()),
  model: v.optional(v.string()),
  stop: v.optional(v.string()),
  thinking: v.optional(v.string()),
})
const Failure = v.object({ type: v.literal('error'), content: v.string(), code: v.optional(v.string()) })
const AgentsUpdated = v.object({ type: v.literal('agents_updated'), agents: AgentList })
/** Beyond Interface 6.1: an approval was requested or answered. The page reads the rest over HTTP. */
const ApprovalChanged = v.object({ type: v.literal('approval') })
const Pong = v.object({ type: v.literal('pong') })

export const ServerFrame = v.variant('type', [
  Connected,
  Thinking,
  ThinkingDelta,
  Phase,
  TextDelta,
  ToolStart,
  ToolEnd,
  Response,
  Failure,
  AgentsUpdated,
  ApprovalChanged,
  Pong,
])
export type ServerFrame = v.InferOutput<typeof ServerFrame>

/** `undefined` for what a newer daemon may send and this page does not know. */
export function parseFrame(value: unknown): ServerFrame | undefined {
  const result = v.safeParse(ServerFrame, value)
  return result.success ? result.output : undefined
}

export const FollowedTurn = v.object({
  turn_id: v.string(),
  entry_point: v.optional(v.string(), ''),
  content: v.string(),
})
export type FollowedTurn = v.InferOutput<typeof FollowedTurn>
export const Snapshot = v.object({
  session_id: v.string(),
  active_session_id: v.string(),
  turns: v.array(FollowedTurn),
  events: v.array(v.object({ event: v.string(), data: v.unknown() })),
})
export const ActiveSession = v.object({ session_id: v.string() })
export const OfTurn = v.object({ turn_id: v.string() })

export const PairingCode = v.object({ pairing_code: v.string() })
export const Paired = v.object({ device_id: v.string(), api_key: v.string() })
export const Ticket = v.object({ ticket: v.string() })
export const Spawned = v.object({ agent_id: v.string(), name: v.string() })
export const Problem = v.object({
  error: v.union([v.string(), v.object({ code: v.optional(v.string()), message: v.string() })]),
})

/** A page of a plugin, which the navigation lists. */
const PluginPage = v.object({
  plugin: v.string(),
  title: v.string(),
  url: v.pipe(v.string(), v.regex(/^\/(?!\/)/)),
})
export type PluginPage = v.InferOutput<typeof PluginPage>
export const PluginPageList = v.object({ pages: v.array(PluginPage) })

const Template = v.object({ name: v.string(), description: v.string() })
export type Template = v.InferOutput<typeof Template>
const names = v.array(v.string())
/** What an agent of a template may use. */
export const TemplateDetail = v.object({
  tier: v.string(),
  skills: names,
  guide: v.string(),
  manifest: v.object({ capabilities: v.object({ tools: names, network: names, shell: names }) }),
})
export type TemplateNeeds = v.InferOutput<typeof TemplateDetail>
const Skill = v.object({ name: v.string(), description: v.string(), enabled: v.boolean() })
export type Skill = v.InferOutput<typeof Skill>
export const SkillList = v.object({ skills: v.array(Skill) })
export const AgentGuide = v.object({ guide: v.optional(v.string(), '') })
export const TemplateList = v.object({ templates: v.array(Template) })

const Model = v.object({
  id: v.string(),
  provider: v.string(),
  display_name: v.string(),
  context_window: v.number(),
  input_cost_per_1m: v.number(),
  output_cost_per_1m: v.number(),
  pricing_known: v.boolean(),
  supports_tools: v.boolean(),
  supports_vision: v.boolean(),
  supports_thinking: v.boolean(),
})
export type Model = v.InferOutput<typeof Model>
export const ModelList = v.object({ models: v.array(Model) })
const Provider = v.object({
  name: v.string(),
  display_name: v.string(),
  auth_status: v.string(),
  env_var: v.optional(v.string()),
  base_url: v.optional(v.string()),
  default_model: v.string(),
})
export type Provider = v.InferOutput<typeof Provider>
export const ProviderList = v.object({ providers: v.array(Provider) })
export const TestedProvider = v.object({ status: v.string(), error: v.optional(v.string()) })
export type TestedProvider = v.InferOutput<typeof TestedProvider>
