import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { checkAssigned } from './assignable.ts'
import type { Assignable } from './assignable.ts'
import { AgentParams, AgentSummary } from './contract.ts'
import { toDetail } from './detail.ts'
import type { HeldAgent } from './roster.ts'
import {
  AgentChange,
  AgentDetail,
  Killed,
  ListQuery,
  ModelChange,
  ModelChanged,
  NewAgent,
  Patched,
  SpawnedAgent,
  Updated,
} from './schema.ts'
import type { AgentService } from './service.ts'

export function agentRoutes(agents: AgentService, assignable: Assignable): readonly AnyRoute[] {
  const list = defineRoute({
    method: 'GET',
    path: '/api/agents',
    summary: 'List agents',
    description: 'Oldest first. `q` searches in names and descriptions; `status` is the same as `state`.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: ListQuery,
    returns: v.array(AgentSummary),
    async handle({ query }) {
      const wanted = query.q?.toLowerCase()
      const state = query.state ?? query.status
      const found = (await agents.list()).filter(
        (agent) =>
          (state === undefined || agent.state === state) &&
          (wanted === undefined ||
            agent.name.toLowerCase().includes(wanted) ||
            agent.manifest.description.toLowerCase().includes(wanted)),
      )
      const from = Number(query.offset ?? 0)
      return agents.summarise(found.slice(from, query.limit === undefined ? undefined : from + Number(query.limit)))
    },
  })

  const spawn = defineRoute({
    method: 'POST',
    path: '/api/agents',
    summary: 'Spawn an agent from a manifest or a template',
    auth: 'bearer',
    effect: 'lasting',
    cost: 50,
    body: NewAgent,
    returns: SpawnedAgent,
    status: 201,
    errors: ['payload_too_large', 'template_not_found', 'conflict', 'forbidden'],
    idempotent: true,
    example: { body: { manifest_toml: 'name = "scribe"\n\n[capabilities]\ntools = ["kv_get", "kv_set"]\n' } },
    async recall(id) {
      const agent = await agents.find(id)
      return agent ? toSpawned(agent, await agents.warnings(agent)) : undefined
    },
    async handle({ body, effectId }) {
      const { toml, signedBy } = await agents.open(body)
      const agent = await agents.spawn(toml, { name: body.name, id: effectId, signedBy })
      return toSpawned(agent, [...(await agents.warnings(agent)), ...agents.unsigned(agent)])
    },
  })

  const read = defineRoute({
    method: 'GET',
    path: '/api/agents/:id',
    summary: 'Read an agent',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: AgentParams,
    returns: AgentDetail,
    errors: ['agent_not_found'],
    async handle({ params }) {
      return toDetail(await agents.require(params.id), await agents.names())
    },
  })

  const kill = defineRoute({
    method: 'DELETE',
    path: '/api/agents/:id',
    summary: 'Kill an agent and remove it',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AgentParams,
    returns: Killed,
    errors: ['agent_not_found'],
    async handle({ params }) {
      const agent = await agents.kill(params.id)
      if (!agent) throw new Refusal('agent_not_found', `No agent ${params.id}`)
      return { status: 'killed' as const, agent_id: agent.id }
    },
  })

  const model = defineRoute({
    method: 'PUT',
    path: '/api/agents/:id/model',
    summary: 'Change the model of an agent',
    description:
      "A model that the agent's own provider lists stays there; else `model` may be an alias or `provider/model`. `warnings` says when nobody knows such a model.",
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AgentParams,
    body: ModelChange,
    returns: ModelChanged,
    errors: ['agent_not_found', 'conflict'],
    async handle({ params, body }) {
      const { warnings, ...choice } = await agents.setModel(params.id, body.model, body.provider)
      return { status: 'updated' as const, ...choice, warnings: [...warnings] }
    },
  })

  const update = defineRoute({
    method: 'PUT',
    path: '/api/agents/:id/update',
    summary: 'Change description, system prompt or tags of an agent',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: AgentParams,
    body: AgentChange,
    returns: Updated,
    errors: ['agent_not_found', 'conflict', 'payload_too_large'],
    async handle({ params, body }) {
      const agent = await change(agents, assignable, params.id, body)
      return { status: 'updated' as const, agent_id: agent.id }
    },
  })

  const patch = defineRoute({
    method: 'PATCH',
    path: '/api/agents/:id',
    summary: 'Change parts of an agent, or replace its manifest',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: AgentParams,
    body: AgentChange,
    returns: Patched,
    errors: ['agent_not_found', 'conflict', 'payload_too_large'],
    async handle({ params, body }) {
      const agent = await change(agents, assignable, params.id, body)
      // Who signed it stands for the manifest: another one without a signature is told like one that comes first.
      const unsigned = body.manifest_toml === undefined ? [] : agents.unsigned(agent)
      return {
        status: 'ok' as const,
        agent_id: agent.id,
        name: agent.name,
        warnings: [...(await agents.warnings(agent)), ...unsigned],
      }
    },
  })

  return [list, spawn, read, kill, model, update, patch]
}

/** Existing clients read `id`, the interface says `agent_id`. */
export function toSpawned(agent: HeldAgent, warnings: readonly string[]) {
  return { agent_id: agent.id, id: agent.id, name: agent.name, warnings: [...warnings] }
}

async function change(
  agents: AgentService,
  assignable: Assignable,
  id: string,
  {
    manifest_toml: manifestToml,
    signed_manifest: signedManifest,
    name,
    description,
    tags,
    mcp_servers: servers,
    skills,
    ...model
  }: AgentChange,
): Promise<HeldAgent> {
  const agent = await agents.require(id)
  const chosen = model.model === undefined ? model : await agents.modelOf(agent, model.model, model.provider)
  const given = Object.entries({
    name,
    description,
    tags,
    mcp_servers: servers,
    skills,
    'model.provider': chosen.provider,
    'model.model': chosen.model,
    'model.system_prompt': model.system_prompt,
    'model.temperature': model.temperature,
    'model.max_tokens': model.max_tokens,
  }).filter(([, value]) => value !== undefined)
  const replaces = manifestToml !== undefined || signedManifest !== undefined
  if (replaces && given.length > 0)
    throw new Refusal('invalid_request', 'manifest_toml: replaces everything, so no other field can be given')
  if (replaces)
    return agents.replace(
      id,
      signedManifest === undefined
        ? { toml: manifestToml ?? '', signedBy: null }
        : await agents.open({ manifest_toml: manifestToml, signed_manifest: signedManifest }),
    )
  if (given.length === 0)
    throw new Refusal(
      'invalid_request',
      `body: nothing to change; one of ${Object.keys(AgentChange.entries).join(', ')} is needed`,
    )
  const edits = Object.fromEntries(given)
  if (servers)
    Object.assign(edits, {
      mcp_servers: await checkAssigned(assignable, 'mcp_servers', servers, agent),
      mcp_disabled: false,
    })
  if (skills)
    Object.assign(edits, { skills: await checkAssigned(assignable, 'skills', skills, agent), skills_disabled: false })
  return agents.edit(id, edits)
}
