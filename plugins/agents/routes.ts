import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Assignable } from './assignable.ts'
import { AgentChange, changeAgent, shownAgent } from './change.ts'
import { AgentParams, AgentSummary, TemplateFailed } from './contract.ts'
import { CheckedDraft, Draft } from './draft-schema.ts'
import type { LoadedAgent } from './registry.ts'
import {
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

export function agentRoutes(
  agents: AgentService,
  assignable: Assignable,
  maxManifestBytes: number,
): readonly AnyRoute[] {
  return [
    listRoute(agents),
    spawnRoute(agents, assignable),
    checkRoute(agents, maxManifestBytes),
    readRoute(agents),
    killRoute(agents),
    modelRoute(agents),
    updateRoute(agents, assignable),
    patchRoute(agents, assignable),
  ]
}

function listRoute(agents: AgentService): AnyRoute {
  return defineRoute({
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
      const needle = query.q?.toLowerCase()
      const state = query.state ?? query.status
      const found = (await agents.list()).filter(
        (agent) =>
          (state === undefined || agent.state === state) &&
          (needle === undefined ||
            agent.name.toLowerCase().includes(needle) ||
            agent.listed.description.toLowerCase().includes(needle)),
      )
      const from = Number(query.offset ?? 0)
      return agents.summarise(found.slice(from, query.limit === undefined ? undefined : from + Number(query.limit)))
    },
  })
}

function spawnRoute(agents: AgentService, assignable: Assignable): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents',
    summary: 'Spawn an agent from a manifest or a template',
    auth: 'bearer',
    effect: 'lasting',
    cost: 50,
    body: NewAgent,
    returns: SpawnedAgent,
    status: 201,
    errors: ['payload_too_large', 'template_not_found', TemplateFailed, 'conflict', 'forbidden'],
    idempotent: true,
    example: { body: { manifest_toml: 'name = "scribe"\n\n[capabilities]\ntools = ["kv_get", "kv_set"]\n' } },
    async recall(id) {
      const agent = await agents.find(id)
      return agent ? toSpawned(agent, await agents.warnings(agent)) : undefined
    },
    async handle({ body, effectId }) {
      const { toml, ...signed } = await agents.open(body)
      const { name, skills } = body
      if (skills?.includes('*') === false) await checkSkills(assignable, skills)
      const file = body.manifest_toml || body.template === undefined ? undefined : `${body.template}.toml`
      const agent = await agents.spawn(toml, { name, skills, id: effectId, file, ...signed })
      return toSpawned(agent, [...(await agents.warnings(agent)), ...agents.unsigned(agent)])
    },
  })
}

function checkRoute(agents: AgentService, maxManifestBytes: number): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/validate',
    summary: 'Check a manifest without making or changing an agent',
    description:
      'Answers 200 with every fault, ten at most, its line and its key. The signature of a signed one is checked and ' +
      'refused as when the agent is made; none is asked for. The text comes back with the `edits` in it.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    body: Draft,
    returns: CheckedDraft,
    errors: ['payload_too_large', 'agent_not_found', 'forbidden'],
    example: { body: { manifest_toml: 'name = "scribe"\n', edits: { 'model.temperature': 0.2 } } },
    async handle({ body }) {
      return (await import('./draft.ts')).checkDraft(agents, maxManifestBytes, body)
    },
  })
}

/** Throws `invalid_request` for one that there is not. */
async function checkSkills(assignable: Assignable, skills: readonly string[]): Promise<void> {
  const { checkAssigned } = await import('./check-assigned.ts')
  await checkAssigned(assignable, 'skills', skills, { manifest: { skills: [], mcp_servers: [] } })
}

function readRoute(agents: AgentService): AnyRoute {
  return defineRoute({
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
      return (await import('./detail.ts')).toDetail(await agents.require(params.id), await agents.names())
    },
  })
}

function killRoute(agents: AgentService): AnyRoute {
  return defineRoute({
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
}

function modelRoute(agents: AgentService): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/agents/:id/model',
    summary: 'Change the model of an agent',
    description:
      "A model that the agent's own provider lists stays there; else `model` may be an alias or " +
      '`provider/model`. `warnings` reports an unknown model.',
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
}

function updateRoute(agents: AgentService, assignable: Assignable): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/agents/:id/update',
    summary: 'Change description, system prompt or tags of an agent',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: AgentParams,
    body: AgentChange,
    shown: shownAgent(agents),
    example: { body: { description: 'Takes notes.', provider: 'openai', model: 'gpt-5-mini' } },
    returns: Updated,
    errors: ['agent_not_found', 'conflict', 'payload_too_large'],
    async handle({ params, body }) {
      const agent = await changeAgent(agents, assignable, params.id, body)
      return { status: 'updated' as const, agent_id: agent.id }
    },
  })
}

function patchRoute(agents: AgentService, assignable: Assignable): AnyRoute {
  return defineRoute({
    method: 'PATCH',
    path: '/api/agents/:id',
    summary: 'Change parts of an agent, or replace its manifest',
    description:
      'Accepts what GET shows: an unchanged field changes nothing. One that cannot be changed here is refused.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: AgentParams,
    body: AgentChange,
    shown: shownAgent(agents),
    example: { body: { description: 'Takes notes.', provider: 'openai', model: 'gpt-5-mini' } },
    returns: Patched,
    errors: ['agent_not_found', 'conflict', 'payload_too_large'],
    async handle({ params, body }) {
      const agent = await changeAgent(agents, assignable, params.id, body)
      // A signature covers the manifest: replacing it with an unsigned one gives the same warning as spawning from one.
      const unsigned = body.manifest_toml === undefined ? [] : agents.unsigned(agent)
      return {
        status: 'ok' as const,
        agent_id: agent.id,
        name: agent.name,
        warnings: [...(await agents.warnings(agent)), ...unsigned],
      }
    },
  })
}

/** Existing clients read `id`, the interface defines `agent_id`. */
export function toSpawned(agent: LoadedAgent, warnings: readonly string[]) {
  return { agent_id: agent.id, id: agent.id, name: agent.name, warnings: [...warnings] }
}
