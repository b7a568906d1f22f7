import type { Inference } from '../providers/contract.ts'
import type { ModelChoice } from './contract.ts'

/** Shows a manifest's model as what it stands for now. Without a provider plugin `default` stays as it is. */
export type NameModel = (choice: ModelChoice) => ModelChoice

/** Asks once, so that a list of ten thousand agents costs one question. */
export async function modelNames(inference: Inference | undefined): Promise<NameModel> {
  if (!inference) return ({ provider, model }) => ({ provider, model })
  const fallback = await inference.defaultModel()
  const ownDefaults = new Map(inference.providers().map((provider) => [provider.name, provider.defaultModel]))
  return ({ provider, model }) => {
    const named = provider === 'default' ? fallback.provider : provider
    if (model !== 'default') return { provider: named, model }
    return { provider: named, model: named === fallback.provider ? fallback.model : ownDefaults.get(named) ?? model }
  }
}
