import type { Price } from 'svc/providers'
import type { Catalog } from '../catalog/contract.ts'
import type { Section } from './config.ts'
import type { Connections } from './connection.ts'
import type { Inference, ResolvedModel } from './contract.ts'
import { isDefault } from './default-model.ts'
import type { DefaultModel } from './default-model.ts'
import { BUILTIN } from './naming.ts'
import type { ModelNaming } from './naming.ts'

/** What is assumed of a model whose window nobody knows. */
export const CONTEXT_WINDOW = 128_000
const GENERIC = 'openai-compatible'

export interface ResolverDeps {
  readonly connections: Connections
  readonly defaults: DefaultModel
  readonly catalog: () => Catalog | undefined
  readonly naming: ModelNaming
}

/** Decides which provider and model a choice stands for, and what is known of that model. */
export function createResolver({ connections, defaults, catalog, naming }: ResolverDeps): Inference['resolve'] {
  async function read(): Promise<Catalog | undefined> {
    const found = catalog()
    await found?.ready()
    return found
  }

  return async (choice) => {
    let { provider, model } = choice
    if (isDefault(provider) && choice.baseUrl !== undefined) provider = GENERIC
    if (isDefault(provider)) ({ provider, model } = await naming.place(model))
    if (isDefault(model)) model = await defaults.modelOf(provider)
    const { entry } = await connections.open({ provider, baseUrl: choice.baseUrl, apiKeyEnv: choice.apiKeyEnv })
    const section = connections.section(provider)
    const known = provider === BUILTIN ? undefined : await read()
    const name = connections.catalogName(provider)
    let found = known?.find(name, model)
    if (known && !found) {
      const alias = known.resolveAlias(model)
      if (alias?.provider === name) found = known.find(name, (model = alias.model))
    }
    return {
      provider,
      model,
      price: priceOf(),
      contextWindow: section?.context_window ?? found?.contextWindow ?? CONTEXT_WINDOW,
      ...(found && found.maxOutputTokens !== null && { maxOutputTokens: found.maxOutputTokens }),
      ...(choice.baseUrl !== undefined && { baseUrl: choice.baseUrl }),
      ...(choice.apiKeyEnv !== undefined && { apiKeyEnv: choice.apiKeyEnv }),
    }

    function priceOf(): ResolvedModel['price'] {
      const price = section?.prices[model]
      if (price) return toPrice(price)
      const isLocal = entry.driver.envVar === undefined && entry.driver.name !== GENERIC
      // Decision: a vendor's price holds wherever its requests are sent; what a gateway charges is said in `prices`
      // of the section.
      if (!isLocal || found?.origin === 'custom') return found?.price ?? undefined
      // What a program on this machine calls is paid for elsewhere, and nobody here knows how much.
      if (entry.driver.lacks) return found?.price ?? undefined
      // What needs no key costs nothing: it runs on this machine.
      return entry.driver.baseUrl === connections.baseUrl(provider) && choice.baseUrl === undefined
        ? { input: 0, output: 0 }
        : undefined
    }
  }
}

function toPrice({
  input,
  output,
  cached_input: cachedInput,
  cache_write: cacheWrite,
}: Section['prices'][string]): Price {
  return {
    input,
    output,
    ...(cachedInput !== undefined && { cachedInput }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  }
}
