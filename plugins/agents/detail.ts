import type { Manifest } from './contract.ts'
import type { NameModel } from './model-names.ts'
import type { LoadedAgent } from './registry.ts'
import type { AgentDetail } from './schema.ts'

/** The agent as `GET /api/agents/:id` shows it (Interface 2.1), with the fields of its manifest. */
export function toDetail(agent: LoadedAgent, name: NameModel): AgentDetail {
  const { manifest } = agent
  return {
    id: agent.id,
    name: agent.name,
    state: agent.state,
    created_at: agent.createdAt,
    session_id: agent.sessionId,
    model: {
      ...name(manifest.model),
      ...placeOf(manifest.model),
      max_tokens: manifest.model.max_tokens,
      temperature: manifest.model.temperature,
    },
    capabilities: {
      tools: manifest.capabilities.tools,
      network: manifest.capabilities.network,
      memory_read: manifest.capabilities.memory_read,
      memory_write: manifest.capabilities.memory_write,
      shell: manifest.capabilities.shell,
      agent_message: manifest.capabilities.agent_message,
      agent_spawn: manifest.capabilities.agent_spawn,
    },
    description: manifest.description,
    tags: manifest.tags,
    mode: agent.mode,
    permission: agent.permission,
    identity: agent.identity,
    version: manifest.version,
    author: manifest.author,
    module: manifest.module,
    profile: manifest.profile ?? null,
    priority: manifest.priority,
    system_prompt: manifest.model.system_prompt,
    fallback_models: manifest.fallback_models.map((model) => ({ ...name(model), ...placeOf(model) })),
    skills: manifest.skills,
    skills_mode: selection(manifest.skills_disabled, manifest.skills),
    mcp_servers: manifest.mcp_servers,
    mcp_servers_mode: selection(manifest.mcp_disabled, manifest.mcp_servers),
    guide: typeof manifest.metadata['guide'] === 'string' ? manifest.metadata['guide'].trim() : '',
    manifest_toml: agent.manifestToml,
    signed_by: agent.row.signed_by,
    warnings: [...agent.warnings],
  }
}

/** An empty list in the manifest means all of them. */
export function selection(disabled: boolean, names: readonly string[]): 'all' | 'allowlist' | 'none' {
  if (disabled) return 'none'
  return names.length === 0 ? 'all' : 'allowlist'
}
function placeOf({ base_url, api_key_env }: Manifest['fallback_models'][number]) {
  return { base_url: base_url ?? null, api_key_env: api_key_env ?? null }
}
