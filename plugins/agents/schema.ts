import * as v from 'valibot'
import { orAbsent, readOwnJson } from 'svc/internal'
import { Names } from './assignable.ts'
import { Identity, StoredIdentity } from './identity.ts'
import { ModelName } from './manifest-schema.ts'

export const States = ['Created', 'Initializing', 'Running', 'Paused', 'Stopped'] as const
export const Modes = ['Normal', 'Stable'] as const
export const Permissions = ['observe', 'assist', 'full'] as const

const agentId = v.pipe(v.string(), v.uuid())
/** A row without an id of an agent is none: its workspace is a folder of this name. */
export const IdentifiedRow = v.looseObject({ id: agentId })
export const AgentRow = v.object({
  id: agentId,
  name: v.string(),
  manifest_toml: v.string(),
  state: v.picklist(States),
  mode: v.picklist(Modes),
  session_id: v.string(),
  created_at: v.string(),
  updated_at: v.string(),
  permission: v.picklist(Permissions),
  /** JSON. */
  identity: v.string(),
  /** JSON of what `Stable` pins; null in mode `Normal`. */
  pin: v.nullable(v.string()),
  cloned_from: v.nullable(agentId),
  /** Who signed the manifest, and with which key; null when nobody did. */
  signed_by: v.nullable(v.string()),
  /** JSON: the manifest as it was signed; null when nobody signed it, and for what ships with svc. */
  envelope: v.nullable(v.string()),
})
export type AgentRow = v.InferOutput<typeof AgentRow>

/** As the plugin writes it. */
export const StoredAgentRow = v.object({
  ...AgentRow.entries,
  identity: v.pipe(
    v.string(),
    v.check((text) => text === '{}' || v.is(StoredIdentity, readOwnJson(text))),
  ),
})
/** The least for each value that another build wrote, so that the agent stays in every list and does nothing with it. */
export const UnknownAgentRow = v.object({
  ...AgentRow.entries,
  state: v.fallback(v.picklist(States), 'Stopped'),
  mode: v.fallback(v.picklist(Modes), 'Stable'),
  permission: v.fallback(v.picklist(Permissions), 'observe'),
  cloned_from: v.fallback(v.nullable(agentId), null),
})

const page = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
export const ListQuery = v.object({
  q: v.optional(v.string()),
  state: v.optional(v.picklist(States)),
  /** The name of existing clients for `state`. */
  status: v.optional(v.picklist(States)),
  limit: v.optional(page),
  offset: v.optional(page),
})

export const NewAgent = v.object({
  manifest_toml: orAbsent(v.string()),
  template: orAbsent(v.pipe(v.string(), v.regex(/^[A-Za-z0-9][\w.-]{0,127}$/, 'Invalid template name'))),
  name: orAbsent(v.string()),
  skills: orAbsent(
    v.pipe(Names, v.description('Instead of those of the manifest: these and no other; ["*"] is all of them.')),
  ),
  signed_manifest: orAbsent(v.unknown()),
})
export type NewAgent = v.InferOutput<typeof NewAgent>
export const SpawnedAgent = v.object({
  agent_id: v.string(),
  id: v.string(),
  name: v.string(),
  warnings: v.array(v.string()),
})

const choice = v.object({ provider: v.string(), model: v.string() })
/** Where its conversations go when it is not where the provider is, and the variable that holds the key for it. */
const place = { base_url: v.nullable(v.string()), api_key_env: v.nullable(v.string()) }
export const AgentDetail = v.object({
  id: v.string(),
  name: v.string(),
  state: v.picklist(States),
  created_at: v.string(),
  session_id: v.string(),
  model: v.object({ ...choice.entries, ...place, max_tokens: v.number(), temperature: v.number() }),
  capabilities: v.object({
    tools: v.array(v.string()),
    network: v.array(v.string()),
    memory_read: v.array(v.string()),
    memory_write: v.array(v.string()),
    shell: v.array(v.string()),
    agent_message: v.array(v.string()),
    agent_spawn: v.boolean(),
  }),
  description: v.string(),
  tags: v.array(v.string()),
  mode: v.picklist(Modes),
  permission: v.picklist(Permissions),
  identity: Identity,
  version: v.string(),
  author: v.string(),
  module: v.string(),
  profile: v.nullable(v.string()),
  priority: v.string(),
  system_prompt: v.string(),
  fallback_models: v.array(v.object({ ...choice.entries, ...place })),
  skills: v.array(v.string()),
  skills_mode: v.picklist(['all', 'allowlist', 'none']),
  mcp_servers: v.array(v.string()),
  mcp_servers_mode: v.picklist(['all', 'allowlist', 'none']),
  /** `metadata.guide`: how to begin, of one from a template. */
  guide: v.string(),
  manifest_toml: v.string(),
  signed_by: v.nullable(v.string()),
  warnings: v.array(v.string()),
})
export type AgentDetail = v.InferOutput<typeof AgentDetail>

export const ModelChange = v.object({
  model: v.pipe(ModelName, v.minLength(1, 'must not be empty')),
  provider: v.optional(v.pipe(ModelName, v.minLength(1))),
})

export const Killed = v.object({ status: v.literal('killed'), agent_id: v.string() })
export const Updated = v.object({ status: v.literal('updated'), agent_id: v.string() })
export const Patched = v.object({
  status: v.literal('ok'),
  agent_id: v.string(),
  name: v.string(),
  warnings: v.array(v.string()),
})
export const ModelChanged = v.object({
  status: v.literal('updated'),
  model: v.string(),
  provider: v.string(),
  warnings: v.array(v.string()),
})
