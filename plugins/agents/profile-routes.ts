import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Assignable } from './assignable.ts'
import { AgentChange, changeAgent, shownAgent } from './change.ts'
import { AgentParams } from './contract.ts'
import { identityChange, identityFields } from './identity.ts'
import { toSpawned } from './routes.ts'
import { SpawnedAgent } from './schema.ts'
import type { AgentService } from './service.ts'

const text = v.optional(v.string())
const Ok = v.object({ status: v.literal('ok'), agent_id: v.string() })
const Configured = v.object({ ...Ok.entries, warnings: v.array(v.string()) })
const IdentityBody = v.object({ name: text, ...identityFields })

const atMost = (limit: number) =>
  orAbsent(
    v.pipe(
      v.string(),
      v.check((value) => value.length <= limit * 16, `at most ${limit} characters`),
    ),
  )
/** A name, description or prompt that is too long answers 413 here, which a schema cannot express. */
const LIMITS = { name: 256, description: 4096, system_prompt: 65_536 } as const
const CloneBody = v.object({
  new_name: atMost(LIMITS.name),
  name: atMost(LIMITS.name),
  include_skills: v.optional(v.boolean(), true),
  include_tools: v.optional(v.boolean(), true),
})

/** How an agent is called and shown, its settings one by one, and its clones. */
export function profileRoutes(agents: AgentService, assignable: Assignable): readonly AnyRoute[] {
  return [identityRoute(agents), configRoute(agents, assignable), cloneRoute(agents)]
}

function identityRoute(agents: AgentService): AnyRoute {
  return defineRoute({
    method: 'PATCH',
    path: '/api/agents/:id/identity',
    summary: 'Change how an agent is called and shown',
    description:
      '`avatar` is `avatar_url`, or `emoji` when it is no address; `persona` is `vibe`. `null` clears a field.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AgentParams,
    body: IdentityBody,
    async shown({ params }) {
      const { name, identity: own } = await agents.require(params.id)
      return { fields: { name, ...own } }
    },
    returns: Ok,
    errors: ['agent_not_found', 'conflict'],
    example: { body: { name: 'Scribe', emoji: '🪶', color: '#5533ff' } },
    async handle({ params, body: { name, ...shown } }) {
      const [edits, changed] = [name === undefined ? {} : { name }, identityChange(shown)]
      const agent =
        name === undefined && !changed ? await agents.require(params.id) : await agents.edit(params.id, edits, changed)
      return { status: 'ok' as const, agent_id: agent.id }
    },
  })
}

function configRoute(agents: AgentService, assignable: Assignable): AnyRoute {
  return defineRoute({
    method: 'PATCH',
    path: '/api/agents/:id/config',
    summary: 'Change settings of an agent',
    description:
      'All of them or none. `model` is named as in PUT …/model. Takes back what GET of the agent shows; one that ' +
      'cannot be changed here is refused.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: AgentParams,
    body: AgentChange,
    shown: shownAgent(agents),
    example: { body: { description: 'Takes notes.', provider: 'openai', model: 'gpt-5-mini' } },
    returns: Configured,
    errors: ['agent_not_found', 'conflict', 'payload_too_large'],
    async handle({ params, body }) {
      checkLengths(body)
      const agent = await changeAgent(agents, assignable, params.id, body)
      return { status: 'ok' as const, agent_id: agent.id, warnings: [...(await agents.warnings(agent))] }
    },
  })
}

function cloneRoute(agents: AgentService): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/:id/clone',
    summary: 'Clone an agent',
    description:
      'A new agent by the same manifest, mode and identity, with a session of its own and copies of the identity ' +
      'files in its workspace. It is called `<name>-clone` unless `new_name` says otherwise.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 50,
    params: AgentParams,
    body: CloneBody,
    returns: SpawnedAgent,
    status: 201,
    errors: ['agent_not_found', 'conflict', 'payload_too_large'],
    example: { body: { new_name: 'scribe-two' } },
    idempotent: true,
    async recall(id) {
      const agent = await agents.find(id)
      return agent && toSpawned(agent, await agents.warnings(agent))
    },
    async handle({ params, body, effectId }) {
      const name = body.new_name ?? body.name
      checkLengths({ new_name: name })
      if (name?.trim() === '') throw new Refusal('invalid_request', 'new_name: must not be empty')
      const agent = await agents.clone(params.id, {
        name,
        skills: body.include_skills,
        tools: body.include_tools,
        id: effectId,
      })
      return toSpawned(agent, await agents.warnings(agent))
    },
  })
}

function checkLengths(body: {
  readonly name?: string | undefined
  readonly new_name?: string | undefined
  readonly description?: string | undefined
  readonly system_prompt?: string | undefined
}): void {
  for (const [field, limit] of Object.entries({ ...LIMITS, new_name: LIMITS.name })) {
    const value = Object.entries(body).find(([name]) => name === field)?.[1]
    if (typeof value === 'string' && value.length > limit)
      throw new Refusal('payload_too_large', `${field}: at most ${limit} characters`, {
        details: { field, limit_chars: limit },
      })
  }
}
