import * as v from 'valibot'
import { line, secret } from 'svc/sdk'

const name = (description: string) =>
  v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(100), v.description(description))
const value = secret(v.pipe(v.string(), v.maxLength(16_384)))

export const AddBody = v.object({
  type: v.optional(name('Id of the entry of the catalogue, such as github.')),
  id: v.optional(name('The same as type.')),
  token: v.optional(v.pipe(value, v.description('Value of the first secret it needs.'))),
  credentials: v.optional(
    v.pipe(secret(v.record(v.string(), value)), v.description('Values of its variables, by name.')),
  ),
  name: v.optional(
    v.pipe(line(100), v.description('Its name, of which the id is made; default: that of the catalogue.')),
  ),
})
export type AddBody = v.InferOutput<typeof AddBody>
export const IntegrationParams = v.object({ id: v.string() })
export const AvailableQuery = v.object({
  category: v.optional(v.pipe(v.string(), v.description('Only entries of this category.'))),
  q: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('Words in the name, the description or the tags.'))),
})

const state = v.picklist(['ready', 'setup', 'available', 'error', 'disabled'])
const texts = v.array(v.string())
const text = v.nullable(v.string())

export const IntegrationItem = v.object({
  id: v.string(),
  template: v.string(),
  name: v.string(),
  description: v.string(),
  icon: v.string(),
  category: v.string(),
  status: state,
  tool_count: v.number(),
  installed_at: v.string(),
  error: text,
})
export const IntegrationList = v.object({ installed: v.array(IntegrationItem), count: v.number() })

const VariableView = v.object({
  name: v.string(),
  label: v.string(),
  help: v.string(),
  is_secret: v.boolean(),
  get_url: text,
  required: v.boolean(),
  /** Whether it belongs to the client that people sign in with. */
  for_login: v.boolean(),
  default: text,
})
const entries = {
  id: v.string(),
  name: v.string(),
  description: v.string(),
  icon: v.string(),
  category: v.string(),
  tags: texts,
  installed: v.boolean(),
  status: state,
  transport: v.picklist(['stdio', 'http', 'sse']),
  required_env: v.array(VariableView),
  has_oauth: v.boolean(),
  /** Whether a login is the only way. */
  needs_login: v.boolean(),
  setup_instructions: v.string(),
}
export const AvailableList = v.object({
  integrations: v.array(v.object(entries)),
  count: v.number(),
  categories: texts,
  /** Files of the operator that are no templates. */
  problems: v.array(v.object({ file: v.string(), message: v.string() })),
})
export const IntegrationDetail = v.object({
  ...IntegrationItem.entries,
  required_env: v.array(VariableView),
  has_oauth: v.boolean(),
  setup_instructions: v.string(),
  /** Its MCP server, which has its name. */
  server: v.nullable(
    v.object({
      transport: v.string(),
      state: v.string(),
      trust: v.string(),
      command: text,
      args: texts,
      url: text,
      env: texts,
      network: texts,
      pid: v.nullable(v.number()),
      restarts: v.number(),
      calls: v.number(),
      failed_calls: v.number(),
    }),
  ),
  tools: v.array(v.object({ name: v.string(), description: v.string(), usable: v.boolean(), reason: text })),
})
export const HealthList = v.object({
  health: v.array(
    v.object({
      id: v.string(),
      status: state,
      tool_count: v.number(),
      last_ok: text,
      last_error: text,
      consecutive_failures: v.number(),
      reconnecting: v.boolean(),
      reconnect_attempts: v.number(),
      connected_since: text,
    }),
  ),
  count: v.number(),
})
export const Added = v.object({
  id: v.string(),
  status: v.literal('installed'),
  state,
  connected: v.boolean(),
  tool_count: v.number(),
  message: v.string(),
})
export const Reconnected = v.object({
  id: v.string(),
  status: v.picklist(['connected', 'login_required', 'error', 'disabled']),
  tool_count: v.number(),
  error: text,
})
export const Reloaded = v.object({
  status: v.literal('reloaded'),
  new_connections: v.number(),
  templates: v.number(),
  problems: v.array(v.object({ file: v.string(), message: v.string() })),
})
