import * as v from 'valibot'

const count = v.pipe(v.number(), v.integer())
const anything = v.record(v.string(), v.unknown())
const maybe = v.nullable(v.string())

export const ToolView = v.object({
  name: v.string(),
  tool: v.string(),
  description: v.string(),
  risk: v.picklist(['read', 'write', 'execute']),
  usable: v.boolean(),
  reason: maybe,
  input_schema: anything,
})
export const ServerView = v.object({
  name: v.string(),
  transport: v.picklist(['stdio', 'http', 'sse']),
  command: maybe,
  args: v.array(v.string()),
  url: maybe,
  headers: v.array(v.string()),
  env: v.array(v.string()),
  network: v.array(v.string()),
  timeout_secs: count,
  lazy: v.boolean(),
  enabled: v.boolean(),
  origin: v.string(),
  trust: v.picklist(['operator', 'confined']),
  state: v.picklist(['connected', 'connecting', 'disconnected', 'error', 'login_required', 'disabled']),
  connected: v.boolean(),
  error: maybe,
  server_info: v.nullable(anything),
  protocol_version: maybe,
  instructions: maybe,
  pid: v.nullable(count),
  restarts: count,
  calls: count,
  failed_calls: count,
  connected_since: maybe,
  last_used: maybe,
  tools: v.array(ToolView),
})
export const ServerList = v.object({ servers: v.array(ServerView), total: count })
export const Changed = v.object({ status: v.picklist(['added', 'updated', 'restarted']), ...ServerView.entries })
export const Removed = v.object({ status: v.literal('removed'), name: v.string() })
export const ToolList = v.object({
  tools: v.array(v.object({ ...ToolView.entries, server: v.string() })),
  total: count,
})
export const Tested = v.object({
  status: v.literal('ok'),
  server_info: anything,
  protocol_version: v.string(),
  tools: v.array(v.object({ name: v.string(), description: v.string() })),
})
export const Log = v.object({
  name: v.string(),
  log: v.string(),
  /** Characters that were dropped at the beginning. */
  dropped: count,
})
export const ServerParams = v.object({ name: v.pipe(v.string(), v.maxLength(64)) })
