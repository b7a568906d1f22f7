import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { checkAssigned, Names } from './assignable.ts'
import type { Assignable } from './assignable.ts'
import { toDetail } from './detail.ts'
import { identityChange, identityFields } from './identity.ts'
import type { ManifestEdits } from './manifest.ts'
import { Address, Variable } from './manifest-schema.ts'
import type { LoadedAgent } from './registry.ts'
import type { AgentService } from './service.ts'

const text = v.optional(v.string())
const named = v.optional(
  v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(256, 'at most 256 characters')),
)
const Fallback = v.object({
  provider: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(256)), 'default'),
  model: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  api_key_env: orAbsent(Variable),
  base_url: orAbsent(Address),
})
/** Fields of the manifest's section `[model]`; its model and provider are named besides. */
const ofModel = {
  system_prompt: text,
  temperature: v.optional(v.number()),
  max_tokens: v.optional(v.number()),
  api_key_env: v.optional(Variable),
  base_url: v.optional(Address),
}
/** GET shows `null` where nothing is set. */
const Model = v.object({
  provider: named,
  model: named,
  ...ofModel,
  api_key_env: v.optional(v.nullable(Variable)),
  base_url: v.optional(v.nullable(Address)),
})
/**
 * What can be changed of an agent (PATCH, PATCH config and PUT update). Ranges are those of the manifest, which the
 * result must fit. `model` is a name, or an object as GET shows it.
 */
export const AgentChange = v.object({
  name: text,
  description: text,
  provider: named,
  model: v.optional(
    v.union(
      [v.pipe(v.string(), v.minLength(1), v.maxLength(256)), Model],
      'expected the name of a model, or an object with model and provider',
    ),
  ),
  ...ofModel,
  tags: v.optional(v.array(v.string())),
  fallback_models: v.optional(v.pipe(v.array(Fallback), v.maxLength(20, 'at most 20'))),
  web_search_augmentation: v.optional(v.picklist(['off', 'auto', 'always'])),
  mcp_servers: v.optional(Names),
  skills: v.optional(Names),
  identity: v.optional(v.object(identityFields)),
  ...identityFields,
  manifest_toml: text,
  signed_manifest: orAbsent(v.unknown()),
})
export type AgentChange = v.InferOutput<typeof AgentChange>

export const shownAgent =
  (agents: AgentService) =>
  async ({ params }: { readonly params: { readonly id: string } }) => ({
    fields: toDetail(await agents.require(params.id), await agents.names()),
    measured: ['warnings'],
  })

/** Makes all changes or none. Without one the agent is as it was. */
export async function changeAgent(
  agents: AgentService,
  assignable: Assignable,
  id: string,
  { manifest_toml: toml, signed_manifest: signed, ...body }: AgentChange,
): Promise<LoadedAgent> {
  const agent = await agents.require(id)
  const given = Object.entries(body).filter(([, value]) => value !== undefined)
  if (toml !== undefined || signed !== undefined) {
    if (given.length > 0)
      throw new Refusal('invalid_request', 'manifest_toml: replaces everything, so no other field can be given')
    return agents.replace(
      id,
      signed === undefined
        ? { toml: toml ?? '', signedBy: null }
        : await agents.open({ manifest_toml: toml, signed_manifest: signed }),
    )
  }
  const { mcp_servers: servers, skills, identity, ...rest } = body
  const edits: ManifestEdits = {
    ...only({
      name: rest.name,
      description: rest.description,
      tags: rest.tags,
      fallback_models: rest.fallback_models?.map((place) => only(place)) as
        | Readonly<Record<string, string>>[]
        | undefined,
      web_search_augmentation: rest.web_search_augmentation,
    }),
    ...(await modelEdits(agents, agent, rest)),
    ...(servers && {
      mcp_servers: await checkAssigned(assignable, 'mcp_servers', servers, agent),
      mcp_disabled: false,
    }),
    ...(skills && { skills: await checkAssigned(assignable, 'skills', skills, agent), skills_disabled: false }),
  }
  const shown = identityChange({ ...identity, ...identityChange(rest) })
  if (Object.keys(edits).length === 0 && !shown) return agent
  return agents.edit(id, edits, shown)
}

async function modelEdits(
  agents: AgentService,
  agent: LoadedAgent,
  body: Pick<AgentChange, 'provider' | 'model' | keyof typeof ofModel>,
): Promise<ManifestEdits> {
  const part = typeof body.model === 'object' ? body.model : undefined
  const shown = toDetail(agent, await agents.names()).model
  const isNew = (key: keyof typeof shown): boolean => part?.[key] !== undefined && part[key] !== shown[key]
  // Provider and model belong together: the shown ones may be what `default` resolves to.
  const pair = part && (isNew('provider') || isNew('model')) ? part : undefined
  const requested = agree('model', typeof body.model === 'string' ? body.model : undefined, pair?.model)
  const provider = agree('provider', body.provider, pair?.provider)
  const chosen =
    requested === undefined ? { provider, model: requested } : await agents.modelOf(agent, requested, provider)
  // What is shown as `null` and sent back stays; what is set and sent as `null` is removed, which an edit to
  // `undefined` does.
  const removed = (['api_key_env', 'base_url'] as const)
    .filter((key) => part?.[key] === null && shown[key] !== null)
    .map((key) => [`model.${key}`, undefined] as const)
  const edits = only({
    'model.provider': chosen.provider,
    'model.model': chosen.model,
    'model.system_prompt': agree('system_prompt', body.system_prompt, part?.system_prompt),
    'model.temperature': agree('temperature', body.temperature, isNew('temperature') ? part?.temperature : undefined),
    'model.max_tokens': agree('max_tokens', body.max_tokens, isNew('max_tokens') ? part?.max_tokens : undefined),
    'model.api_key_env': agree('api_key_env', body.api_key_env, part?.api_key_env ?? undefined),
    'model.base_url': agree('base_url', body.base_url, part?.base_url ?? undefined),
  })
  return { ...edits, ...Object.fromEntries(removed) }
}

/** The one of two that is given. */
function agree<T>(name: string, own: T | undefined, inModel: T | undefined): T | undefined {
  if (own !== undefined && inModel !== undefined && own !== inModel)
    throw new Refusal('invalid_request', `${name}: differs from model.${name}`)
  return own ?? inModel
}
function only<T extends object>(edits: T): Partial<T> {
  return Object.fromEntries(Object.entries(edits).filter(([, value]) => value !== undefined)) as Partial<T>
}
