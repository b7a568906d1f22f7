import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { Names } from './assignable.ts'
import type { Assignable } from './assignable.ts'
import { identityFields } from './identity.ts'
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
export const modelFields = {
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
  ...modelFields,
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
  ...modelFields,
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
    fields: (await import('./detail.ts')).toDetail(await agents.require(params.id), await agents.names()),
    measured: ['warnings'],
  })

/** Makes all changes or none. Without one the agent is as it was. */
export async function changeAgent(
  agents: AgentService,
  assignable: Assignable,
  id: string,
  change: AgentChange,
): Promise<LoadedAgent> {
  return (await import('./apply-change.ts')).applyChange(agents, assignable, id, change)
}
