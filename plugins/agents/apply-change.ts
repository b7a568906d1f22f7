import { Refusal } from 'svc/sdk'
import type { Assignable } from './assignable.ts'
import { checkAssigned } from './check-assigned.ts'
import type { AgentChange, modelFields } from './change.ts'
import { toDetail } from './detail.ts'
import { identityChange } from './identity.ts'
import type { ManifestEdits } from './manifest.ts'
import type { LoadedAgent } from './registry.ts'
import type { AgentService } from './service.ts'

/** Makes all changes or none. Without one the agent is as it was. */
export async function applyChange(
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
        ? { toml: toml ?? '', signedBy: null, envelope: null }
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
  body: Pick<AgentChange, 'provider' | 'model' | keyof typeof modelFields>,
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
