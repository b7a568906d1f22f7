import * as v from 'valibot'
import { defineRoute, orAbsent, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from './contract.ts'
import { identityChange, identityFields } from './identity.ts'
import { Address, Variable } from './manifest-schema.ts'
import { toSpawned } from './routes.ts'
import { SpawnedAgent } from './schema.ts'
import type { AgentService } from './service.ts'

const text = v.optional(v.string())
const Ok = v.object({ status: v.literal('ok'), agent_id: v.string() })
const IdentityBody = v.object({ name: text, ...identityFields })

const atMost = (limit: number) =>
  orAbsent(
    v.pipe(
      v.string(),
      v.check((value) => value.length <= limit * 16, `at most ${limit} characters`),
    ),
  )
/** Longer than a name, a description or a prompt may be is 413 here, which a schema cannot say. */
const LIMITS = { name: 256, description: 4096, system_prompt: 65_536 } as const
const named = v.optional(
  v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(256, 'at most 256 characters')),
)
const [variable, address] = [v.optional(Variable), v.optional(Address)]
const Fallback = v.object({
  provider: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256)), 'default'),
  model: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  api_key_env: v.exactOptional(Variable),
  base_url: v.exactOptional(Address),
})
const ConfigBody = v.object({
  name: text,
  description: text,
  system_prompt: text,
  ...identityFields,
  provider: named,
  model: named,
  api_key_env: variable,
  base_url: address,
  fallback_models: v.optional(v.pipe(v.array(Fallback), v.maxLength(20, 'at most 20'))),
  max_tokens: v.optional(v.number()),
  temperature: v.optional(v.number()),
  web_search_augmentation: v.optional(v.picklist(['off', 'auto', 'always'])),
})
const CloneBody = v.object({
  new_name: atMost(LIMITS.name),
  name: atMost(LIMITS.name),
  include_skills: v.optional(v.boolean(), true),
  include_tools: v.optional(v.boolean(), true),
})

/** How an agent is called and shown, its settings one by one, and its clones. */
export function profileRoutes(agents: AgentService): readonly AnyRoute[] {
  const identity = defineRoute({
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
    returns: Ok,
    errors: ['agent_not_found', 'conflict'],
    example: { body: { name: 'Scribe', emoji: '🪶', color: '#5533ff' } },
    async handle({ params, body: { name, ...shown } }) {
      const agent = await change(agents, params.id, name === undefined ? {} : { name }, shown, IdentityBody)
      return { status: 'ok' as const, agent_id: agent.id }
    },
  })

  const config = defineRoute({
    method: 'PATCH',
    path: '/api/agents/:id/config',
    summary: 'Change settings of an agent',
    description: 'All of them or none. `model` may be `provider/model` or an alias.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 10,
    params: AgentParams,
    body: ConfigBody,
    returns: Ok,
    errors: ['agent_not_found', 'conflict', 'payload_too_large'],
    async handle({ params, body }) {
      checkLengths(body)
      const {
        name,
        description,
        system_prompt,
        provider,
        model,
        api_key_env,
        base_url,
        fallback_models,
        max_tokens,
        temperature,
        web_search_augmentation,
        ...shown
      } = body
      const chosen =
        model === undefined
          ? { provider, model }
          : await agents.modelOf(await agents.require(params.id), model, provider)
      const edits = Object.fromEntries(
        Object.entries({
          name,
          description,
          fallback_models,
          web_search_augmentation,
          'model.system_prompt': system_prompt,
          'model.provider': chosen.provider,
          'model.model': chosen.model,
          'model.api_key_env': api_key_env,
          'model.base_url': base_url,
          'model.max_tokens': max_tokens,
          'model.temperature': temperature,
        }).filter(([, value]) => value !== undefined),
      )
      const agent = await change(agents, params.id, edits, shown, ConfigBody)
      return { status: 'ok' as const, agent_id: agent.id }
    },
  })

  const clone = defineRoute({
    method: 'POST',
    path: '/api/agents/:id/clone',
    summary: 'Clone an agent',
    description:
      'A new agent by the same manifest, mode and identity, with a session of its own and copies of the identity files in its workspace. It is called `<name>-clone` unless `new_name` says otherwise.',
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

  return [identity, config, clone]
}

async function change(
  agents: AgentService,
  id: string,
  edits: Parameters<AgentService['edit']>[1],
  shown: Parameters<typeof identityChange>[0],
  body: { readonly entries: object },
) {
  const changed = identityChange(shown)
  if (Object.keys(edits).length > 0 || changed) return agents.edit(id, edits, changed)
  await agents.require(id)
  throw new Refusal(
    'invalid_request',
    `body: nothing to change; one of ${Object.keys(body.entries).join(', ')} is needed`,
  )
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
