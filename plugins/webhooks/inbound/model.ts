import { Refusal } from 'svc/sdk'
import type { Hooks } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import { ModelsListed } from '../../catalog/contract.ts'
import type { Catalog } from '../../catalog/contract.ts'
import type { Inference } from '../../providers/contract.ts'

export interface ModelParts {
  readonly hooks: Pick<Hooks, 'apply'>
  readonly inference: () => Inference | undefined
  readonly catalog: () => Catalog | undefined
}
export interface ModelChoice {
  readonly provider: string
  readonly model: string
}

/**
 * The model a caller asks for, for one turn: an alias, `provider/model`, or a model of the agent's own provider. Throws `conflict` for an
 * agent whose model is pinned, `invalid_request` for a model nobody knows, and `service_unavailable` for one that cannot be used now.
 */
export async function chooseModel(
  { hooks, inference, catalog }: ModelParts,
  agent: Agent,
  wanted: string,
): Promise<ModelChoice> {
  if (agent.mode === 'Stable')
    throw new Refusal('conflict', `model: agent "${agent.name}" is in mode Stable, which pins its model`, {
      details: { mode: 'Stable' },
    })
  const models = inference()
  if (!models) throw new Refusal('service_unavailable', 'model: no provider of models is loaded', { retryAfterSecs: 5 })
  const known = catalog()
  await known?.ready()
  const asked = known?.resolveAlias(wanted) ?? split(wanted, agent.manifest.model.provider, models)
  const { provider, model } = await models.resolve(asked)
  const listed = known?.list(provider) ?? []
  const isKnown =
    listed.length === 0 ||
    known?.find(provider, model) !== undefined ||
    models.providers().some(({ name, defaultModel }) => name === provider && defaultModel === model) ||
    (await models.defaultModel()).model === model ||
    (await hooks.apply(ModelsListed, { usable: new Set<string>(), models: [] })).models.some(
      (one) => one.provider === provider && one.id === model,
    )
  // The embedded model answers whatever it is called.
  if (!isKnown || (asked.model !== 'default' && asked.model !== model))
    throw new Refusal(
      'invalid_request',
      `model: ${provider} has no model "${asked.model}" that is known here; GET /api/models lists those there are, POST /api/models/custom adds one`,
    )
  return { provider, model }
}

/** `groq/llama-3.3-70b` names the provider too, when there is one of that name; the ids of some models have slashes of their own. */
function split(wanted: string, own: string, models: Inference): ModelChoice {
  const slash = wanted.indexOf('/')
  const prefix = wanted.slice(0, Math.max(0, slash))
  return slash < wanted.length - 1 && models.providers().some(({ name }) => name === prefix)
    ? { provider: prefix, model: wanted.slice(slash + 1) }
    : { provider: own, model: wanted }
}
