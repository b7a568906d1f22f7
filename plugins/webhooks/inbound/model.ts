import { omitUndefined, Refusal } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Inference } from '../../providers/contract.ts'

export interface ModelChoice {
  readonly provider: string
  readonly model: string
}

/**
 * The model a caller names for one turn, as `Inference.choose` accepts it. Throws `conflict` for an agent whose model
 * is pinned, `invalid_request` for an unknown model, and `service_unavailable` for one that cannot be used now.
 */
export async function chooseModel(models: Inference | undefined, agent: Agent, name: string): Promise<ModelChoice> {
  if (agent.mode === 'Stable')
    throw new Refusal('conflict', `model: agent "${agent.name}" is in mode Stable, which pins its model`, {
      details: { mode: 'Stable' },
    })
  if (!models) throw new Refusal('service_unavailable', 'model: no provider of models is loaded', { retryAfterSecs: 5 })
  const { provider: own, base_url: baseUrl, api_key_env: apiKeyEnv } = agent.manifest.model
  // A provider with its own base URL may have a model of any name.
  if (baseUrl !== undefined) {
    await models.resolve({ provider: own, model: name, baseUrl, ...omitUndefined({ apiKeyEnv }) })
    return { provider: own, model: name }
  }
  const choice = await models.choose(name, own)
  const { provider, model } = await models.resolve(choice)
  const doubt = await models.doubt(choice)
  // The embedded model answers under any name.
  if (doubt !== undefined || (choice.model !== 'default' && choice.model !== model))
    throw new Refusal('invalid_request', `model: ${doubt ?? `provider ${provider} has no model "${choice.model}"`}`)
  return { provider, model }
}
