import type { Catalog, CatalogModel, ModelsListing } from '../catalog/contract.ts'
import type { Connections } from './connection.ts'
import type { Inference, ProviderState } from './contract.ts'
import type { Ollama } from './ollama.ts'

/** What a driver names that knows no usual model. */
const UNKNOWN = 'default'

/** Adds the providers that can be used, with their models: those with a key, and those on this machine that answer. */
export async function addUsableModels(
  listing: ModelsListing,
  {
    inference,
    connections,
    ollama,
    catalog,
  }: { inference: Inference; connections: Connections; ollama: Ollama; catalog: () => Catalog | undefined },
): Promise<ModelsListing> {
  const usable = new Set(listing.usable)
  const models: CatalogModel[] = [...listing.models]
  for (const state of inference.providers()) {
    const { name, authStatus, defaultModel } = state
    const section = connections.section(name)
    if (name === 'ollama') {
      const { available, models: installed } = await ollama.detected()
      if (!available) continue
      usable.add(name)
      for (const id of installed) models.push(own(state, id, section?.context_window))
      continue
    }
    // Whether another local server runs cannot be known without a request: it counts when it is configured. A provider
    // without an address runs in this process.
    if (
      authStatus === 'missing' ||
      (authStatus === 'no_key_needed' && state.baseUrl !== undefined && section === undefined)
    )
      continue
    usable.add(name)
    const vendor = connections.catalogName(name)
    const known = catalog()?.list(vendor) ?? []
    // A vendor under another name has the vendor's models; of what is in no catalog that is known which its driver or
    // its section names.
    if (vendor !== name) for (const model of known) models.push({ ...model, provider: name })
    const named = [...(defaultModel === UNKNOWN ? [] : [defaultModel]), ...Object.keys(section?.prices ?? {})]
    for (const id of new Set(named)) if (!known.some((model) => model.id === id)) models.push(await asNamed(id))
    async function asNamed(id: string): Promise<CatalogModel> {
      const { price, contextWindow } = await inference.resolve({ provider: name, model: id })
      return {
        ...own(state, id, contextWindow),
        price: price ?? null,
        tier: authStatus === 'no_key_needed' ? 'local' : 'custom',
      }
    }
  }
  return { usable, models }
}

const own = ({ name }: ProviderState, id: string, contextWindow: number | undefined): CatalogModel => ({
  id,
  provider: name,
  name: id,
  contextWindow: contextWindow ?? null,
  maxOutputTokens: null,
  price: name === 'ollama' ? { input: 0, output: 0 } : null,
  supports: { tools: null, vision: null, streaming: true, thinking: null },
  tier: 'local',
  origin: 'provider',
})
