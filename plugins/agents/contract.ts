import * as v from 'valibot'
import { defineError, defineService, notify, transform } from 'svc/sdk'
import type { Statement, ToolDescription } from 'svc/sdk'

/** Path parameters of every route below `/api/agents/:id` (Interface 7: an invalid UUID is 400). */
export const AgentParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid agent ID')) })

/** How an agent is listed (Interface 2.1): `default` is shown as the provider and model it currently resolves to. */
export const AgentSummary = v.object({
  id: v.string(),
  name: v.string(),
  state: v.picklist(['Created', 'Initializing', 'Running', 'Paused', 'Stopped']),
  created_at: v.string(),
  model_provider: v.string(),
  model_name: v.string(),
})
export type AgentSummary = v.InferOutput<typeof AgentSummary>

/** `autonomous.quiet_hours`: hour and minute of the beginning and of the end, such as `22:00-07:00`. */
export const QUIET_HOURS = /^\s*([01]?\d|2[0-4]):([0-5]\d)\s*(?:-|–|to)\s*([01]?\d|2[0-4]):([0-5]\d)\s*$/

export type AgentState = 'Created' | 'Initializing' | 'Running' | 'Paused' | 'Stopped'
/** Which of the tools it is granted an agent may use: none, those that only read, all. */
export type Permission = 'observe' | 'assist' | 'full'
/** How an agent is shown. */
export interface Identity {
  readonly emoji?: string | undefined
  readonly avatar_url?: string | undefined
  readonly color?: string | undefined
  readonly archetype?: string | undefined
  readonly vibe?: string | undefined
  readonly greeting_style?: string | undefined
}
export interface ModelChoice {
  readonly provider: string
  readonly model: string
}

/** A capability that a manifest grants; a tool names the one it `needs`. */
export type Capability = keyof Manifest['capabilities']

/** `schedule` of a manifest: `reactive` works when somebody asks. `prompt` is what the agent is asked each time. */
export type WorkSchedule =
  | 'reactive'
  | {
      /** A cron expression of five fields in a time zone, UTC when absent. */
      readonly periodic?: { readonly cron: string; readonly tz?: string; readonly prompt?: string }
      readonly continuous?: { readonly check_interval_secs: number; readonly prompt?: string }
      /** When something happens, such as `event:agent_spawned`, `memory:user.*` or `content:flood`. */
      readonly proactive?: { readonly conditions: readonly string[]; readonly prompt?: string }
    }

/** The parsed manifest with its defaults filled in (Interface 2.1, API facts 2.1). */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly author: string
  readonly module: string
  readonly tags: readonly string[]
  readonly model: {
    /** `default` means whatever the daemon is configured to use. */
    readonly provider: string
    readonly model: string
    readonly system_prompt: string
    readonly max_tokens: number
    readonly temperature: number
    readonly base_url?: string
    readonly api_key_env?: string
    /** Tokens; what the model is known to take when absent. */
    readonly context_window?: number | undefined
    readonly max_output_tokens?: number | undefined
    /** Handed to the provider as they are. */
    readonly extra_params: Readonly<Record<string, unknown>>
  }
  readonly fallback_models: readonly (ModelChoice & { readonly base_url?: string; readonly api_key_env?: string })[]
  readonly capabilities: {
    readonly tools: readonly string[]
    readonly network: readonly string[]
    readonly memory_read: readonly string[]
    readonly memory_write: readonly string[]
    /** Patterns of commands for `shell_exec` and the process tools. Empty: none. */
    readonly shell: readonly string[]
    readonly agent_spawn: boolean
    /** Patterns of names of agents it may send to. Empty: none. */
    readonly agent_message: readonly string[]
    readonly ofp_discover: boolean
    readonly ofp_connect: readonly string[]
  }
  /** 0 means unlimited. */
  readonly resources: {
    readonly max_tool_calls_per_minute: number
    readonly max_llm_tokens_per_hour: number
    readonly max_network_bytes_per_hour: number
    readonly max_cost_per_hour_usd: number
    readonly max_cost_per_day_usd: number
    readonly max_cost_per_month_usd: number
  }
  readonly autonomous: {
    readonly max_iterations: number
    /** `HH:MM-HH:MM`, local time of the daemon. */
    readonly quiet_hours?: string | undefined
  }
  /**
   * Models for easy and hard questions, as `provider/model`, a model of the agent's own provider or an alias; the
   * agent's own where one is not named.
   */
  readonly routing: {
    readonly simple_model?: string | undefined
    readonly medium_model?: string | undefined
    readonly complex_model?: string | undefined
    /** A score below this is simple. */
    readonly simple_threshold: number
    /** A score from this on is complex. */
    readonly complex_threshold: number
  }
  /** When it works without being asked, which the plugins of schedules and triggers see to. */
  readonly schedule: WorkSchedule
  /** Triggers of the agent, as `POST /api/triggers` takes them, without `agent_id`. */
  readonly triggers: readonly Readonly<Record<string, unknown>>[]
  readonly session_mode: 'persistent' | 'new'
  readonly profile?: 'minimal' | 'coding' | 'research' | 'messaging' | 'automation' | 'full' | 'custom' | undefined
  /** Empty lists mean all of them, unless the matching `_disabled` is set. */
  readonly skills: readonly string[]
  readonly mcp_servers: readonly string[]
  /** Channels it talks on, as patterns; an empty list is all of them. */
  readonly channels: readonly string[]
  readonly skills_disabled: boolean
  readonly tools_disabled: boolean
  readonly mcp_disabled: boolean
  /** Patterns; an empty allowlist allows all. The blocklist is applied after it. */
  readonly tool_allowlist: readonly string[]
  readonly tool_blocklist: readonly string[]
  /** Parameters by tool, `[tools.<name>]`. */
  readonly tools: Readonly<Record<string, unknown>>
  readonly metadata: Readonly<Record<string, unknown>>
  readonly enabled: boolean
  /** Whether a new workspace gets its identity files. */
  readonly generate_identity_files: boolean
  readonly exec_policy?: Readonly<Record<string, unknown>> | undefined
  readonly response_format?: 'text' | 'json' | Readonly<Record<string, unknown>> | undefined
  readonly thinking?: Readonly<Record<string, unknown>> | undefined
  readonly compaction?: Readonly<Record<string, unknown>> | undefined
  /** What the agent remembers by itself, `[proactive_memory]`. */
  readonly proactive_memory?: Readonly<Record<string, unknown>> | undefined
  /** Given to the model beside the conversation, and not stored there. */
  readonly context_injection: readonly {
    readonly name?: string | undefined
    readonly content: string
    readonly position: 'system' | 'before_user' | 'after_reset'
    readonly condition?: string | undefined
  }[]
  readonly max_history_messages?: number | undefined
  /** Turns that may run at a time, across sessions; those another agent waits for are not counted. */
  readonly max_concurrent_invocations?: number | undefined
}
export interface Agent {
  readonly id: string
  readonly name: string
  readonly state: AgentState
  /** `Stable` pins the model, in `manifest` too, and freezes the set of skills and tools. */
  readonly mode: 'Normal' | 'Stable'
  readonly permission: Permission
  readonly identity: Identity
  /** The agent it was cloned from, which may have been removed since. */
  readonly clonedFrom: string | undefined
  /** ISO 8601 UTC. */
  readonly createdAt: string
  readonly manifest: Manifest
  readonly manifestToml: string
  /** The session that messages without one of their own go to. */
  readonly sessionId: string
}

export interface Agents {
  find(id: string): Promise<Agent | undefined>
  findByName(name: string): Promise<Agent | undefined>
  /** Throws `agent_not_found`. */
  require(id: string): Promise<Agent>
  /** By id or by name. Throws `agent_not_found`, with the nearest name. */
  resolve(idOrName: string): Promise<Agent>
  /**
   * The agent that a caller reaches who cannot name one: the one that the configuration names by id or name, else the
   * first agent. Throws `agent_not_found`.
   */
  forCaller(configured?: string): Promise<Agent>
  /**
   * The agent, when it accepts messages. Throws `agent_not_found`, `conflict` while it is paused or stopped and
   * `service_unavailable` while it is being created.
   */
  requireRunning(id: string): Promise<Agent>
  /**
   * Whether the manifest grants the tool, what it needs and the MCP server or skill it comes from, its lists let it through and
   * the agent's permission covers the risk.
   */
  mayUse(agent: Agent, tool: Pick<ToolDescription, 'name' | 'risk' | 'needs' | 'source'>): boolean
  /** Whether `capabilities.agent_message` of its manifest names the other agent. */
  mayMessage(from: Agent, to: Agent): boolean
  /** Every agent, oldest first. */
  list(): Promise<readonly Agent[]>
  /** Every agent as it is listed on the wire, oldest first. */
  summaries(): Promise<readonly AgentSummary[]>
  /**
   * What a manifest says, without making an agent of it, and a sentence for each thing in it without effect. Throws
   * what `spawn` throws of the text: `line` and `column` are in the details for malformed TOML, else `issues`.
   */
  readManifest(manifestToml: string): {
    readonly manifest: Manifest
    readonly warnings: readonly string[]
    /** The paths of keys that mean nothing, which are among the warnings, and of what is most likely meant. */
    readonly unknown: readonly { readonly path: string; readonly nearest: string | undefined }[]
  }
  /** Throws `invalid_request` with line and column for malformed TOML, and `conflict` for a name in use. */
  spawn(manifestToml: string, options?: SpawnSource): Promise<Agent>
  /** `undefined` when the agent does not exist. */
  kill(id: string): Promise<Agent | undefined>
  /**
   * Throws `agent_not_found`, and `forbidden` when the manifest does not let the agent read or write a memory key of
   * its own. Written to the audit log when it does not.
   */
  checkMemory(id: string, access: 'read' | 'write', key: string): Promise<void>
  /** Those of an agent's own memory keys that it may read. Throws `agent_not_found`. */
  readableMemory(id: string, keys: readonly string[]): Promise<readonly string[]>
  /**
   * Changes the model, by a name that `Inference.choose` accepts. Returns the model in force and the warnings about it.
   * Throws `agent_not_found`, and `conflict` in mode Stable.
   */
  setModel(id: string, model: string): Promise<ModelChoice & { readonly warnings: readonly string[] }>
  /** Makes a session the active one. Throws `agent_not_found`. */
  activate(id: string, sessionId: string): Promise<void>
}
export const Agents = defineService<Agents>()('agents')

/** Where a manifest is from. */
export interface SpawnSource {
  /** A plugin made it of what came with svc, unchanged: it counts as signed where `manifest_signing` asks for that. */
  readonly isShipped?: boolean
  /** Its schedule and its triggers are disabled until a person enables them. */
  readonly isResting?: boolean
}
/** The agent that makes another one, and for whom it does so. */
export interface SpawnAuthor {
  readonly agentId: string
  /** The agents for which it works, itself the last. */
  readonly onBehalf: readonly string[]
  /** Where the manifest comes from, such as `ExternalNetwork`. */
  readonly labels: readonly string[]
}

/** Agents created by agents. What applies to a child applies to all its descendants. */
export interface Family {
  /**
   * Makes an agent for another one, with no right the other has not (security facts 1.12). Throws `forbidden` naming
   * the right, which is in the audit log then, and what `spawn` throws; nothing is made in these cases. `onBehalf`: the
   * agents for which the first one works.
   */
  spawn(
    parentId: string,
    manifestToml: string,
    options?: SpawnSource & Partial<Pick<SpawnAuthor, 'onBehalf' | 'labels'>>,
  ): Promise<Agent>
  /** The id of the agent that made another one, which may have been removed since; `undefined` when none did. */
  parentOf(agent: Agent): string | undefined
  /** Whether the second descends from the first, at any distance. */
  isDescendant(ancestorId: string, id: string): Promise<boolean>
  /** Ends an agent that descends from another one. Throws `forbidden` for any other. */
  kill(ancestorId: string, id: string): Promise<Agent>
}
export const Family = defineService<Family>()('agent-family')

/** Variables of one agent, which may be secrets: programs that its tools start get them, and its model does not. */
export interface AgentVariables {
  /** `read`: those that a plugin has for an agent. Until it is disposed. */
  add(read: (agentId: string) => Promise<Readonly<Record<string, string>>>): Disposable
  of(agentId: string): Promise<Readonly<Record<string, string>>>
}
export const AgentVariables = defineService<AgentVariables>()('agent-variables')

/** An agent is being made. */
export interface Spawning {
  readonly agent: Agent
  readonly statements: readonly Statement[]
  /** Absent when no agent makes it. */
  readonly by?: SpawnAuthor | undefined
  /** What wakes it is to be disabled. */
  readonly isResting?: boolean | undefined
}
/**
 * Statements for the batch that makes an agent: what other plugins keep of it is on disk together with it. Throws what
 * refuses the manifest.
 */
export const AgentSpawning = transform<Spawning>('agents:spawning')
/** An agent was made. It is on disk and accepts messages, unless its manifest disables it. */
export const AgentSpawned = notify<{ readonly agent: Agent }>('agents:spawned')
/** An agent was removed, and its rows are deleted. */
export const AgentKilled = notify<{ readonly agent: Agent }>('agents:killed')
/** Statements for the batch that removes an agent: they take effect together with the removal. */
export const AgentKilling = transform<{ readonly agent: Agent; readonly statements: readonly Statement[] }>(
  'agents:killing',
)
/** The manifest of an agent is being changed. */
export interface Changing {
  readonly before: Agent
  readonly agent: Agent
  readonly statements: readonly Statement[]
  /** Somebody sent a whole manifest, and not some values of it. */
  readonly isWhole: boolean
}
/** Statements for the batch that changes the manifest of an agent. Throws what refuses the change. */
export const AgentChanging = transform<Changing>('agents:changing')
/** State, manifest or active session changed. */
export const AgentChanged = notify<{ readonly agent: Agent }>('agents:changed')

/** Somebody asks for an agent from a template. */
export interface AskedTemplate {
  readonly name: string
  /** From the listener that has it. `isShipped`: it came with svc, unchanged. */
  readonly found?: { readonly toml: string; readonly isShipped: boolean }
  /** What there is. */
  readonly names: readonly string[]
}
/** The message names file, line and key; they are in the details too. */
export const TemplateFailed = defineError('template_failed', {
  status: 409,
  format: 'coded',
  meaning: 'the file of the template cannot be used',
})
/** An agent is spawned from a template: a listener that has it adds it, and throws when it cannot be used. */
export const TemplateAsked = transform<AskedTemplate>('agents:template-asked')

/** What can be assigned to agents. A plugin with skills or MCP servers adds their names. */
export const AssignablesListed = transform<{
  readonly kind: 'skills' | 'mcp_servers'
  readonly names: readonly string[]
}>('agents:assignables-listed')
