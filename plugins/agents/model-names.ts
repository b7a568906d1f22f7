import type { Catalog } from '../catalog/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Manifest, ModelChoice } from './contract.ts'

/** Shows a manifest's model as what it currently resolves to. Without a provider plugin `default` stays as it is. */
export type NameModel = (choice: ModelChoice) => ModelChoice

/** Resolves once, so that a list of ten thousand agents costs one lookup. */
export async function modelNames(inference: Inference | undefined, catalog?: Catalog): Promise<NameModel> {
  if (!inference) return ({ provider, model }) => ({ provider, model })
  const [fallback, alias] = await Promise.all([inference.defaultModel(), catalog?.aliasLookup()])
  const ownDefaults = new Map(inference.providers().map((provider) => [provider.name, provider.defaultModel]))
  return ({ provider, model }) => {
    const named = provider === 'default' ? fallback.provider : provider
    // The offline model accepts any name.
    const target = model === 'default' || named === 'builtin' ? undefined : alias?.(model)
    if (target && (provider === 'default' || provider === target.provider))
      return { provider: target.provider, model: target.model }
    // Whatever is named for a real provider, the offline one answers.
    if (provider === 'default' && named === 'builtin') return { provider: named, model: fallback.model }
    if (model !== 'default') return { provider: named, model }
    return { provider: named, model: named === fallback.provider ? fallback.model : (ownDefaults.get(named) ?? model) }
  }
}

/**
 * The model that a name resolves to, for an agent of provider `own`. Without providers it is a model of its own
 * provider.
 */
export type ChooseModel = (requested: string, own: string) => Promise<ModelChoice>

/** Warnings about the models that a manifest names. An address of its own may offer any model. */
export async function modelWarnings(
  inference: Inference | undefined,
  { model, fallback_models: fallbacks }: Pick<Manifest, 'model' | 'fallback_models'>,
): Promise<readonly string[]> {
  if (!inference) return []
  const named = [
    { at: 'model', ...model },
    ...fallbacks.map((choice, index) => ({ at: `fallback_models.${index}`, ...choice })),
  ].filter(({ base_url: address }) => address === undefined)
  const doubts = await Promise.all(
    named.map(async ({ at, provider, model: id }) => {
      const doubt = await inference.doubt({ provider, model: id })
      return doubt === undefined ? [] : [`${at}: ${doubt}`]
    }),
  )
  return doubts.flat()
}
