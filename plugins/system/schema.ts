import * as v from 'valibot'
import { AgentSummary } from '../agents/contract.ts'

export const Ready = v.object({ status: v.literal('ready') })
export const Health = v.object({
  status: v.picklist(['ok', 'degraded']),
  uptime_seconds: v.number(),
  panic_count: v.number(),
  restart_count: v.number(),
})
export const HealthDetail = v.object({
  ...Health.entries,
  version: v.string(),
  agent_count: v.number(),
  database: v.picklist(['connected', 'error']),
  config_warnings: v.array(v.string()),
  failed_plugins: v.array(v.object({ name: v.string(), state: v.string(), reason: v.string() })),
})
export const Status = v.object({
  status: v.picklist(['running', 'stopping']),
  version: v.string(),
  agent_count: v.number(),
  data_dir: v.string(),
  home_dir: v.string(),
  listen_addr: v.string(),
  log_level: v.string(),
  api_key_set: v.boolean(),
  default_provider: v.string(),
  default_model: v.string(),
  /** Why the default cannot be used as it is configured. */
  default_problem: v.nullable(v.string()),
  /** How the CLI is called on the machine of the daemon. */
  command: v.string(),
  uptime_seconds: v.number(),
  started_at: v.string(),
  agents: v.array(AgentSummary),
})
export const Version = v.object({
  name: v.literal('svc'),
  version: v.string(),
  build_date: v.string(),
  git_sha: v.string(),
  rust_version: v.string(),
  platform: v.string(),
  arch: v.string(),
})
export const Versions = v.object({
  current: v.string(),
  supported: v.array(v.string()),
  deprecated: v.array(v.string()),
  details: v.array(v.object({ version: v.string(), status: v.string(), url_prefix: v.string() })),
})
export const Document = v.record(v.string(), v.unknown())
export const ShuttingDown = v.object({ status: v.literal('shutting_down') })
export const Restarting = v.object({ status: v.literal('restarting') })

export const ToolsQuery = v.object({ details: v.optional(v.picklist(['true', 'false'])) })
const ListedTool = v.object({
  name: v.string(),
  title: v.nullable(v.string()),
  description: v.string(),
  risk: v.picklist(['read', 'write', 'execute']),
  needs: v.pipe(v.nullable(v.string()), v.description('The capability of the manifest without which it is of no use.')),
  source: v.pipe(v.nullable(v.string()), v.description('Where its plugin has it from, such as `mcp:github`.')),
})
export const ToolNames = v.object({
  tools: v.array(v.string()),
  total: v.number(),
  details: v.exactOptional(v.array(ListedTool)),
})
export const ToolParams = v.object({ name: v.string() })
export const ToolDetail = v.object({
  name: v.string(),
  description: v.string(),
  input_schema: Document,
  risk: v.picklist(['read', 'write', 'execute']),
  effect: v.pipe(
    v.picklist(['read', 'conversation', 'own', 'lasting']),
    v.description('What a call leaves behind, as docs/authority.md has it: who may approve it follows from that.'),
  ),
})

export const LogQuery = v.object({
  level: v.optional(
    v.pipe(
      v.picklist(['error', 'warn', 'info', 'debug', 'trace']),
      v.description('The least important level that is sent.'),
    ),
    'info',
  ),
  filter: v.optional(
    v.pipe(v.string(), v.maxLength(200), v.description('Only lines with this text, whatever its case.')),
  ),
  tail: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\d{1,3}$/, 'must be a whole number from 0 to 500'),
      v.transform(Number),
      v.maxValue(500, 'must be at most 500'),
    ),
    '200',
  ),
  follow: v.optional(
    v.pipe(v.picklist(['true', 'false']), v.description('false ends the answer after the last lines.')),
    'true',
  ),
})
export const LogEvent = v.object({
  seq: v.number(),
  timestamp: v.string(),
  level: v.picklist(['fatal', 'error', 'warn', 'info', 'debug', 'trace']),
  tag: v.string(),
  message: v.string(),
  fields: v.optional(v.record(v.string(), v.unknown())),
  action: v.string(),
  detail: v.string(),
  agent_id: v.string(),
  missed: v.optional(
    v.pipe(v.number(), v.description('Lines before this one that were left out, because the reader was too slow.')),
  ),
})
