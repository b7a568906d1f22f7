import type { Catalog } from '../catalog/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { ModelChoice } from './contract.ts'

/** Shows a manifest's model as what it stands for now. Without a provider plugin `default` stays as it is. */
export type NameModel = (choice: ModelChoice) => ModelChoice

/** Asks once, so that a list of ten thousand agents costs one question. */
export async function modelNames(inference: Inference | undefined, catalog?: Catalog): Promise<NameModel> {
  if (!inference) return ({ provider, model }) => ({ provider, model })
  const [fallback, alias] = await Promise.all([inference.defaultModel(), catalog?.aliasLookup()])
  const ownDefaults = new Map(inference.providers().map((provider) => [provider.name, provider.defaultModel]))
  return ({ provider, model }) => {
    const named = provider === 'default' ? fallback.provider : provider
    // The offline model is asked for nothing by name.
    const target = model === 'default' || named === 'builtin' ? undefined : alias?.(model)
    if (target && (provider === 'default' || provider === target.provider))
      return { provider: target.provider, model: target.model }
    if (model !== 'default') return { provider: named, model }
    return { provider: named, model: named === fallback.provider ? fallback.model : (ownDefaults.get(named) ?? model) }
  }
}

/** The model somebody asks for by an alias, with or without its provider. Without a provider in it, that of the manifest stays. */
export async function chooseModel(
  inference: Inference | undefined,
  catalog: Catalog | undefined,
  id: string,
): Promise<{ readonly provider?: string; readonly model: string }> {
  return (await catalog?.aliasLookup())?.(id) ?? splitModel(inference, id)
}

/** `groq/llama-3.3-70b` names the provider too, when there is one of that name; the ids of some models have slashes of their own. */
export function splitModel(
  inference: Inference | undefined,
  id: string,
): { readonly provider?: string; readonly model: string } {
  const slash = id.indexOf('/')
  const prefix = id.slice(0, Math.max(slash, 0))
  const known = inference?.providers().some((provider) => provider.name === prefix) ?? false
  return known && slash < id.length - 1 ? { provider: prefix, model: id.slice(slash + 1) } : { model: id }
}
