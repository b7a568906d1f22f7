import { Refusal } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Inference } from '../../providers/contract.ts'

export interface ModelParts {
  readonly inference: () => Inference | undefined
}
export interface ModelChoice {
  readonly provider: string
  readonly model: string
}

/**
 * The model a caller asks for, for one turn, by a name as `Inference.choose` takes it. Throws `conflict` for an
 * agent whose model is pinned, `invalid_request` for a model nobody knows, and `service_unavailable` for one that cannot be used now.
 */
export async function chooseModel({ inference }: ModelParts, agent: Agent, wanted: string): Promise<ModelChoice> {
  if (agent.mode === 'Stable')
    throw new Refusal('conflict', `model: agent "${agent.name}" is in mode Stable, which pins its model`, {
      details: { mode: 'Stable' },
    })
  const models = inference()
  if (!models) throw new Refusal('service_unavailable', 'model: no provider of models is loaded', { retryAfterSecs: 5 })
  const { provider: own, base_url: baseUrl, api_key_env: apiKeyEnv } = agent.manifest.model
  // An address of its own may have a model of any name.
  if (baseUrl !== undefined) {
    await models.resolve({ provider: own, model: wanted, baseUrl, ...(apiKeyEnv === undefined ? {} : { apiKeyEnv }) })
    return { provider: own, model: wanted }
  }
  const asked = await models.choose(wanted, own)
  const { provider, model } = await models.resolve(asked)
  const doubt = await models.doubt(asked)
  // The embedded model answers whatever it is called.
  if (doubt !== undefined || (asked.model !== 'default' && asked.model !== model))
    throw new Refusal('invalid_request', `model: ${doubt ?? `provider ${provider} has no model "${asked.model}"`}`)
  return { provider, model }
}
