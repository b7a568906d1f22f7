import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { Agent, flag, some, text, texts } from './fields.ts'
import type { Capabilities } from './fields.ts'

/** Of an agent of a hand; part of the agent's name. */
const ROLE = /^[a-z][a-z0-9_-]{0,31}$/
const MAX_ROLES = 16

const optional = <T extends v.GenericSchema>(schema: T) => v.optional(schema)
/** What `[agent]` has, where an agent of several names it. */
const own = {
  provider: optional(some(256)),
  api_key_env: Agent.entries.api_key_env,
  base_url: Agent.entries.base_url,
  max_tokens: optional(Agent.entries.max_tokens.wrapped),
  temperature: optional(Agent.entries.temperature.wrapped),
  system_prompt: optional(Agent.entries.system_prompt),
}
const Role = v.object({
  ...own,
  /** The one that the schedule wakes, and that has the settings; the first one where none is marked. */
  coordinator: flag,
  /** When the coordinator asks it. */
  invoke_hint: v.optional(text(1000), ''),
  /** A template of agents, for the prompt, description and model that it does not name itself. */
  base: optional(some(128)),
  description: v.optional(text(4096), ''),
  module: Agent.entries.module,
  /** A name, or a table as in a manifest. */
  model: optional(v.union([some(256), v.object({ ...own, model: optional(some(256)) })], 'must be a name or a table')),
  max_iterations: Agent.entries.max_iterations,
  heartbeat_interval_secs: Agent.entries.heartbeat_interval_secs,
  tools: optional(texts.wrapped),
  skills: optional(texts.wrapped),
  mcp_servers: optional(texts.wrapped),
  capabilities: optional(
    v.object({
      tools: optional(texts.wrapped),
      network: optional(texts.wrapped),
      shell: optional(texts.wrapped),
      agent_message: optional(texts.wrapped),
    }),
  ),
})
type Role = v.InferOutput<typeof Role>
/** `[agents.<role>]`. */
export const Roles = v.pipe(
  v.record(v.string(), Role),
  v.check((roles) => Object.keys(roles).length > 0, 'must have an agent'),
  v.check((roles) => Object.keys(roles).length <= MAX_ROLES, `at most ${MAX_ROLES} agents`),
)
export type Roles = v.InferOutput<typeof Roles>

export type AgentTable = v.InferOutput<typeof Agent>
/** What an agent may use. */
export type Rights = Readonly<Record<'tools' | 'skills' | 'mcp_servers', readonly string[]>> & {
  readonly capabilities: v.InferOutput<typeof Capabilities>
}
/** An agent beside the coordinator. */
export interface Helper extends Rights {
  readonly role: string
  readonly hint: string
  readonly base: string | undefined
  readonly agent: AgentTable
}
/** What a definition with several agents comes to: the rights of all are those of the coordinator. */
export interface Team extends Rights {
  readonly agent: AgentTable
  readonly role: string
  readonly base: string | undefined
  readonly helpers: readonly Helper[]
}

/**
 * While it answers the coordinator, an agent can do no more than that one, so the coordinator has the rights of all. One
 * without a list of its own has that of the hand. `fail` throws for the key that cannot be used.
 */
export function readTeam(
  hand: Rights & { readonly id: string; readonly description: string },
  roles: Roles,
  fail: (key: string, reason: string) => never,
): Team {
  const names = Object.keys(roles)
  const marked = names.filter((name) => roles[name]?.coordinator === true)
  const chief = marked[0] ?? names[0] ?? ''
  if (marked[1] !== undefined) fail(`agents.${marked[1]}.coordinator`, `"${chief}" is the coordinator already`)
  const all = Object.entries(roles).map(([role, table]): Helper => {
    if (!ROLE.test(role))
      fail(`agents.${role}`, 'must be a lower-case letter, then lower-case letters, digits, "_" and "-", 32 in all')
    if (role !== chief && table.heartbeat_interval_secs !== undefined)
      fail(`agents.${role}.heartbeat_interval_secs`, `the coordinator wakes it; the schedule is that of "${chief}"`)
    const agent = agentOf(`${hand.id}-${role}`, table)
    if (agent.system_prompt === '' && table.base === undefined) fail(`agents.${role}.system_prompt`, 'is missing')
    return { role, hint: table.invoke_hint || agent.description, base: table.base, agent, ...rightsOf(table, hand) }
  })
  const helpers = all.filter(({ role }) => role !== chief)
  const coordinator = all.find(({ role }) => role === chief)
  if (!coordinator) throw new Error('a hand without agents')
  const together = (of: (one: Rights) => readonly string[]): string[] => [...new Set([hand, ...all].flatMap(of))]
  const tools = together((one) => one.tools)
  return {
    agent: coordinator.agent,
    role: chief,
    base: coordinator.base,
    helpers,
    tools: helpers.length === 0 ? tools : [...new Set([...tools, 'agent_send'])],
    skills: together((one) => one.skills),
    mcp_servers: together((one) => one.mcp_servers),
    capabilities: {
      network: together((one) => one.capabilities.network),
      shell: together((one) => one.capabilities.shell),
      agent_message: together((one) => one.capabilities.agent_message),
    },
  }
}

function rightsOf({ tools, skills, mcp_servers: servers, capabilities: own = {} }: Role, hand: Rights): Rights {
  return {
    tools: tools ?? own.tools ?? hand.tools,
    skills: skills ?? hand.skills,
    mcp_servers: servers ?? hand.mcp_servers,
    capabilities: {
      network: own.network ?? hand.capabilities.network,
      shell: own.shell ?? hand.capabilities.shell,
      agent_message: own.agent_message ?? hand.capabilities.agent_message,
    },
  }
}

/** As `[agent]` would say it. */
function agentOf(name: string, table: Role): AgentTable {
  const model = typeof table.model === 'object' ? table.model : { model: table.model }
  const merged = { ...defined(table), ...defined(model) }
  return {
    name,
    description: table.description,
    module: table.module,
    provider: merged.provider ?? 'default',
    model: model.model ?? 'default',
    api_key_env: merged.api_key_env,
    base_url: merged.base_url,
    max_tokens: merged.max_tokens ?? 4096,
    temperature: merged.temperature ?? 0.7,
    system_prompt: merged.system_prompt ?? '',
    max_iterations: table.max_iterations,
    heartbeat_interval_secs: table.heartbeat_interval_secs,
  }
}
type Own = { readonly [K in keyof typeof own]?: v.InferOutput<(typeof own)[K]> }
const defined = ({ provider, api_key_env, base_url, max_tokens, temperature, system_prompt }: Own): Own =>
  omitUndefined({ provider, api_key_env, base_url, max_tokens, temperature, system_prompt })
