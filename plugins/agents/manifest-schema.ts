import * as v from 'valibot'
import { line } from 'svc/sdk'
import type { WorkSchedule } from './contract.ts'

const control = /\p{Cc}/u
const whole = (least: number) => v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(Number.MAX_SAFE_INTEGER))
const amount = v.pipe(v.number(), v.finite(), v.minValue(0))
const text = v.pipe(v.string(), v.maxLength(4096))
/** A single string counts as a list of one. */
const texts = v.union(
  [
    v.array(v.string()),
    v.pipe(
      v.string(),
      v.transform((one) => [one]),
    ),
  ],
  'Expected a list of strings',
)
const list = (fallback: readonly string[] = []) => v.optional(texts, [...fallback])
const table = v.record(v.string(), v.unknown())
const tables = v.array(table)

const AgentName = line(256)
export const Description = v.pipe(v.string(), v.maxLength(4096, 'at most 4096 characters'))
const SystemPrompt = v.pipe(v.string(), v.maxLength(65_536, 'at most 65536 characters'))

export const Variable = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of an environment variable'),
)
export const Address = v.pipe(
  v.string(),
  v.maxLength(2048),
  v.check((url) => /^https?:\/\//i.test(url) && URL.canParse(url), 'must be an http(s) address'),
)

/** Of a provider or a model. */
export const ModelName = v.pipe(
  text,
  v.check((name) => !control.test(name), 'must not hold control characters'),
)
/** Manifests of compatible services leave it to the daemon with an empty text or `auto`. */
const nameOrDefault = v.optional(
  v.pipe(
    ModelName,
    v.transform((name) => (name === '' || name === 'auto' ? 'default' : name)),
  ),
  'default',
)
const choice = {
  provider: nameOrDefault,
  model: nameOrDefault,
  api_key_env: v.exactOptional(Variable),
  base_url: v.exactOptional(Address),
}

const Model = v.looseObject({
  ...choice,
  system_prompt: v.optional(SystemPrompt, ''),
  max_tokens: v.optional(whole(1), 4096),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2)), 0.7),
  context_window: v.optional(whole(1)),
  max_output_tokens: v.optional(whole(1)),
  extra_params: v.optional(table, {}),
})

const Capabilities = v.looseObject({
  // Decision: a missing list grants nothing, except an agent's own memory, which is no one else's business.
  tools: list(),
  network: list(),
  memory_read: list(['self.*']),
  memory_write: list(['self.*']),
  agent_spawn: v.optional(v.boolean(), false),
  agent_message: list(),
  shell: list(),
  ofp_discover: v.optional(v.boolean(), false),
  ofp_connect: list(),
})

const Resources = v.looseObject({
  max_memory_bytes: v.optional(whole(0), 268_435_456),
  max_cpu_time_ms: v.optional(whole(0), 30_000),
  max_tool_calls_per_minute: v.optional(whole(0), 60),
  // 0 means unlimited, here and in the costs.
  max_llm_tokens_per_hour: v.optional(whole(0), 0),
  max_network_bytes_per_hour: v.optional(whole(0), 104_857_600),
  max_cost_per_hour_usd: v.optional(amount, 0),
  max_cost_per_day_usd: v.optional(amount, 0),
  max_cost_per_month_usd: v.optional(amount, 0),
  burst_ratio: v.optional(amount),
})

const Autonomous = v.looseObject({
  quiet_hours: v.optional(v.string()),
  max_iterations: v.optional(whole(1), 50),
  max_restarts: v.optional(whole(0), 10),
  heartbeat_interval_secs: v.optional(whole(1), 30),
  heartbeat_channel: v.optional(v.string()),
  heartbeat_timeout_secs: v.optional(whole(1)),
  heartbeat_keep_recent: v.optional(whole(0)),
})

const Routing = v.looseObject({
  simple_model: v.optional(ModelName),
  medium_model: v.optional(ModelName),
  complex_model: v.optional(ModelName),
  simple_threshold: v.optional(whole(0), 100),
  complex_threshold: v.optional(whole(0), 500),
})

const Injection = v.looseObject({
  name: v.optional(text),
  content: SystemPrompt,
  position: v.optional(v.picklist(['system', 'before_user', 'after_reset']), 'system'),
  condition: v.optional(text),
})

const prompt = v.exactOptional(
  v.pipe(v.string(), v.trim(), v.nonEmpty('must not be empty'), v.maxLength(16_384, 'at most 16384 characters')),
)
const Periodic = v.object({ cron: v.string(), tz: v.exactOptional(text), prompt })
const Proactive = v.object({ conditions: list(), prompt })
const Continuous = v.object({ check_interval_secs: v.optional(whole(1), 300), prompt })
const WorkTimes = v.pipe(
  v.object({
    periodic: v.exactOptional(Periodic),
    proactive: v.exactOptional(Proactive),
    continuous: v.exactOptional(Continuous),
  }),
  v.check((times) => Object.keys(times).length > 0, 'Expected "reactive" or a table periodic, proactive or continuous'),
)
const Reactive = v.literal('reactive', 'Expected "reactive" or a table periodic, proactive or continuous')
// What else the values have to be, the plugins of schedules and triggers say, when the agent is made or changed.
const Schedule: v.GenericSchema<unknown, WorkSchedule> = v.lazy((given) =>
  typeof given === 'object' ? WorkTimes : Reactive,
)

/**
 * Every key of an agent manifest, all of them optional (Interface 2.1, API facts 2.1). Unknown keys stay where they
 * are.
 */
export const ManifestDocument = v.looseObject({
  name: v.optional(AgentName, 'unnamed'),
  version: v.optional(text, '0.1.0'),
  description: v.optional(Description, ''),
  author: v.optional(text, ''),
  module: v.optional(text, 'builtin:chat'),
  tags: list(),
  model: v.optional(Model, {}),
  fallback_models: v.optional(v.array(v.looseObject(choice)), []),
  capabilities: v.optional(Capabilities, {}),
  resources: v.optional(Resources, {}),
  autonomous: v.optional(Autonomous, {}),
  routing: v.optional(Routing, {}),
  schedule: v.optional(Schedule, 'reactive'),
  session_mode: v.optional(v.picklist(['persistent', 'new']), 'persistent'),
  profile: v.optional(v.picklist(['minimal', 'coding', 'research', 'messaging', 'automation', 'full', 'custom'])),
  priority: v.optional(v.picklist(['Low', 'Normal', 'High', 'Critical']), 'Normal'),
  skills: list(),
  mcp_servers: list(),
  skills_disabled: v.optional(v.boolean(), false),
  tools_disabled: v.optional(v.boolean(), false),
  mcp_disabled: v.optional(v.boolean(), false),
  channels: list(),
  tool_allowlist: list(),
  tool_blocklist: list(),
  allowed_plugins: list(),
  metadata: v.optional(table, {}),
  tools: v.optional(table, {}),
  pinned_model: v.optional(text),
  workspace: v.optional(text),
  workspaces: v.optional(table, {}),
  generate_identity_files: v.optional(v.boolean(), true),
  exec_policy: v.optional(table),
  response_format: v.optional(v.union([v.picklist(['text', 'json']), table])),
  enabled: v.optional(v.boolean(), true),
  inherit_parent_context: v.optional(v.boolean(), true),
  thinking: v.optional(table),
  context_injection: v.optional(v.pipe(v.array(Injection), v.maxLength(32, 'at most 32')), []),
  web_search_augmentation: v.optional(v.picklist(['off', 'auto', 'always'])),
  auto_dream_enabled: v.optional(v.boolean(), false),
  auto_dream_min_hours: v.optional(amount),
  auto_dream_min_sessions: v.optional(whole(0)),
  show_progress: v.optional(v.boolean()),
  auto_evolve: v.optional(v.boolean()),
  cache_context: v.optional(v.boolean()),
  max_history_messages: v.optional(whole(1)),
  max_concurrent_invocations: v.optional(whole(1)),
  proactive_memory: v.optional(table),
  compaction: v.optional(table),
  triggers: v.optional(tables, []),
})
export type ManifestDocument = v.InferOutput<typeof ManifestDocument>

const known = (schema: { readonly entries: object }) => new Set(Object.keys(schema.entries))
/**
 * Keys of features that do not exist here. They are kept, so that a manifest of a compatible service loses nothing, and
 * reported as warnings. `*` matches every key of a table.
 */
export const idleKeys: readonly string[] = [
  'priority',
  'allowed_plugins',
  'inherit_parent_context',
  'web_search_augmentation',
  'auto_dream_enabled',
  'auto_dream_min_hours',
  'auto_dream_min_sessions',
  'show_progress',
  'auto_evolve',
  'cache_context',
  'thinking.budget_tokens',
  'thinking.stream_thinking',
  'tools.*',
  'resources.max_memory_bytes',
  'resources.max_cpu_time_ms',
  'resources.max_network_bytes_per_hour',
  'resources.burst_ratio',
  'autonomous.max_restarts',
  'autonomous.heartbeat_interval_secs',
  'autonomous.heartbeat_channel',
  'autonomous.heartbeat_timeout_secs',
  'autonomous.heartbeat_keep_recent',
]

/**
 * The keys that mean something, by table; the top level is the empty name. Tables that are free by definition are not
 * listed.
 */
export const knownKeys: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['', known(ManifestDocument)],
  ['model', known(Model)],
  ['capabilities', known(Capabilities)],
  ['resources', known(Resources)],
  ['autonomous', known(Autonomous)],
  ['routing', known(Routing)],
  ['fallback_models', new Set(Object.keys(choice))],
  ['schedule', known(WorkTimes)],
  ['schedule.periodic', known(Periodic)],
  ['schedule.proactive', known(Proactive)],
  ['schedule.continuous', known(Continuous)],
  [
    'triggers',
    new Set([
      'pattern',
      'prompt_template',
      'enabled',
      'max_fires',
      'target_agent_id',
      'cooldown_secs',
      'session_mode',
      'workflow_id',
      'delivery',
      'delivery_targets',
    ]),
  ],
])
