import { findNearest, listNearest, suggest } from 'svc/internal'
import type { Price } from 'svc/providers'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Catalog, CatalogModel } from '../catalog/contract.ts'
import type { Section } from './config.ts'
import type { Connections } from './connection.ts'
import type { Inference, ResolvedModel } from './contract.ts'
import { isDefault, PREFERENCE } from './default-model.ts'
import type { DefaultModel } from './default-model.ts'
import type { Ollama } from './ollama.ts'
import type { DriverEntry } from './registry.ts'

export const BUILTIN = 'builtin'
const GENERIC = 'openai-compatible'
/** The window that is assumed for a model without a known one. */
const CONTEXT_WINDOW = 128_000
/** How many other providers of a model a warning names. */
const MAX_OTHERS = 3

export interface NamingDeps {
  readonly connections: Connections
  readonly defaults: DefaultModel
  readonly ollama: Ollama
  readonly catalog: () => Catalog | undefined
}
interface Choice {
  readonly provider: string
  readonly model: string
}

/** How a manifest names a model: with an optional address and key variable. */
type ModelChoice = Parameters<Inference['resolve']>[0]

/** Resolves the names of models everywhere, so that one name means one model. */
export class ModelNaming {
  readonly #connections: Connections
  readonly #defaults: DefaultModel
  readonly #ollama: Ollama
  readonly #catalog: () => Catalog | undefined

  constructor({ connections, defaults, ollama, catalog }: NamingDeps) {
    this.#connections = connections
    this.#defaults = defaults
    this.#ollama = ollama
    this.#catalog = catalog
  }

  /** The provider and model that a name resolves to when an agent of provider `own` uses it. */
  async choose(name: string, own: string): Promise<Choice> {
    if (isDefault(name)) return { provider: own, model: name }
    const provider = isDefault(own) ? (await this.#defaults.find()).provider : own
    if (await this.#lists(provider, name)) return { provider: own, model: name }
    const known = await this.#readCatalog()
    const alias = known?.resolveAlias(name)
    if (alias) return alias
    const slash = name.indexOf('/')
    const prefix = name.slice(0, Math.max(0, slash))
    const rest = name.slice(slash + 1)
    if (prefix === '' || rest === '' || !this.#connections.driver(prefix)) return { provider: own, model: name }
    // A provider that prefixes its models with their maker may have a new one that no list has yet.
    const isMaker = known?.list(this.#connections.catalogName(provider)).some(({ id }) => id.startsWith(`${prefix}/`))
    return isMaker && !(await this.#lists(prefix, rest))
      ? { provider: own, model: name }
      : { provider: prefix, model: rest }
  }

  /** The provider and model that a choice resolves to, and what is known of that model. Throws when it has no key. */
  async resolve(choice: ModelChoice): Promise<ResolvedModel> {
    const { baseUrl, apiKeyEnv } = choice
    let { provider, model } = choice
    if (isDefault(provider) && baseUrl !== undefined) provider = GENERIC
    if (isDefault(provider)) ({ provider, model } = await this.place(model))
    if (isDefault(model)) model = await this.#defaults.modelOf(provider)
    const entry = await this.#connections.requireDriver({ provider, baseUrl, apiKeyEnv })
    const section = this.#connections.section(provider)
    const known = provider === BUILTIN ? undefined : await this.#readCatalog()
    const vendor = this.#connections.catalogName(provider)
    let found = known?.find(vendor, model)
    if (known && !found) {
      const alias = known.resolveAlias(model)
      if (alias?.provider === vendor) found = known.find(vendor, (model = alias.model))
    }
    const price = section?.prices[model]
    return {
      provider,
      model,
      price: price ? toPrice(price) : this.#catalogPrice(found, entry, provider, baseUrl),
      contextWindow: section?.context_window ?? found?.contextWindow ?? CONTEXT_WINDOW,
      ...omitUndefined({ maxOutputTokens: found?.maxOutputTokens ?? undefined, baseUrl, apiKeyEnv }),
    }
  }

  /** The provider and model that an agent gets which names a model without a provider. */
  async place(model: string): Promise<Choice> {
    const usual = await this.#defaults.find()
    // A model that was meant for a real provider is unknown to the offline one.
    if (isDefault(model) || usual.provider === BUILTIN) return usual
    const chosen = await this.choose(model, usual.provider)
    if (chosen.provider !== usual.provider || (await this.#lists(usual.provider, chosen.model))) return chosen
    const known = await this.#readCatalog()
    const other = known && this.#defaults.keyed().find((one) => known.find(this.#connections.catalogName(one), model))
    return { provider: other ?? usual.provider, model }
  }

  /** A warning that there may be no such model; `undefined` when it is known, or cannot be checked. */
  async doubt(choice: Choice): Promise<string | undefined> {
    if (isDefault(choice.model)) return isDefault(choice.provider) ? undefined : this.#noProvider(choice.provider)
    const { provider, model } = isDefault(choice.provider) ? await this.place(choice.model) : choice
    if (isDefault(choice.provider) && provider === BUILTIN && model !== choice.model)
      return this.#unplaced(choice.model, await this.#readCatalog())
    const missing = this.#noProvider(provider)
    if (missing !== undefined) return missing
    const known = await this.#readCatalog()
    if (!known || !(await this.#canTell(provider, known)) || (await this.#lists(provider, model))) return undefined
    if (known.resolveAlias(model)?.provider === this.#connections.catalogName(provider)) return undefined
    const hint = this.#otherProviders(model, known) ?? (await this.#nearestModels(provider, model))
    return `provider ${provider} has no model "${model}" that is known here; ${hint}`
  }

  /** Why the default cannot be used as it is configured, or was not chosen as it was. */
  async defaultProblem(): Promise<string | undefined> {
    const { model: configured } = this.#defaults.configured()
    const { provider, model } = await this.#defaults.find()
    if (provider === BUILTIN && configured !== undefined && !isDefault(configured) && model !== configured)
      return `default_model is "${configured}": ${this.#unplaced(configured, await this.#readCatalog())}`
    try {
      await this.#connections.requireDriver({ provider })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return error.message
    }
    return undefined
  }

  #catalogPrice(
    found: CatalogModel | undefined,
    { driver }: DriverEntry,
    provider: string,
    baseUrl: string | undefined,
  ): ResolvedModel['price'] {
    const isLocal = driver.envVar === undefined && driver.name !== GENERIC
    // Decision: a vendor's price applies wherever its requests are sent; set a gateway's prices in `prices` of the
    // section. The calls of a local program are billed elsewhere, at an unknown price.
    if (!isLocal || found?.origin === 'custom' || driver.missingRequirement) return found?.price ?? undefined
    // What needs no key costs nothing: it runs on this machine.
    const atHome = driver.baseUrl === this.#connections.baseUrl(provider) && baseUrl === undefined
    return atHome ? { input: 0, output: 0 } : undefined
  }

  async #readCatalog(): Promise<Catalog | undefined> {
    const found = this.#catalog()
    await found?.ready()
    return found
  }

  async #installed(provider: string): Promise<readonly string[]> {
    return provider === 'ollama' && this.#connections.driver(provider) ? (await this.#ollama.detected()).models : []
  }

  /** Whether a provider is known to have a model of exactly this name. */
  async #lists(provider: string, model: string): Promise<boolean> {
    const section = this.#connections.section(provider)
    if (section?.default_model === model || Object.hasOwn(section?.prices ?? {}, model)) return true
    if (this.#connections.driver(provider)?.driver.defaultModel === model) return true
    const known = await this.#readCatalog()
    if (known?.find(this.#connections.catalogName(provider), model)) return true
    const usual = await this.#defaults.find()
    if (usual.provider === provider && usual.model === model) return true
    return (await this.#installed(provider)).includes(model)
  }

  /** Whether enough is known of a provider's models to call one unknown. */
  async #canTell(provider: string, known: Catalog): Promise<boolean> {
    const count = known.list(this.#connections.catalogName(provider)).length + (await this.#installed(provider)).length
    return count > 0 || provider === BUILTIN
  }

  #noProvider(provider: string): string | undefined {
    if (this.#connections.driver(provider)) return undefined
    const names = this.#connections.names()
    const nearest = suggest(findNearest(provider, names))
    return `there is no provider "${provider}"${nearest}; there are ${names.toSorted().join(', ') || 'none'}`
  }

  #otherProviders(model: string, known: Catalog): string | undefined {
    const others = known
      .list()
      .filter(
        ({ provider, id }) => (id === model || `${provider}/${id}` === model) && this.#connections.driver(provider),
      )
      .map(({ provider, id }) => `${provider}/${id}`)
    if (others.length === 0) return undefined
    const more = others.length > MAX_OTHERS ? ` and ${others.length - MAX_OTHERS} more` : ''
    return `there is ${others.slice(0, MAX_OTHERS).join(', ')}${more}`
  }

  async #nearestModels(provider: string, model: string): Promise<string> {
    const known = await this.#readCatalog()
    const ids = known?.list(this.#connections.catalogName(provider)).map(({ id }) => id) ?? []
    const near = listNearest(model, [...ids, ...(await this.#installed(provider))])
    const nearest = near.length === 0 ? '' : `the nearest: ${near.join(', ')}; `
    return `${nearest}GET /api/models lists those there are, POST /api/models/custom adds one`
  }

  /** Why the offline model answers for a model, and what may have been meant. */
  #unplaced(model: string, known: Catalog | undefined): string {
    const makers = new Map<string, string>()
    // Of several providers of a model the preferred one is named.
    for (const { provider, id } of known?.list() ?? [])
      if (this.#connections.driver(provider) && rank(provider) < rank(makers.get(id))) makers.set(id, provider)
    const near = listNearest(model.slice(model.indexOf('/') + 1), makers.keys())
    const hint =
      near.length === 0
        ? 'GET /api/models lists those there are'
        : `the nearest: ${near.map((id) => `${makers.get(id)}/${id}`).join(', ')}`
    return `no provider that can be used has a model "${model}", so the built-in offline model answers; ${hint}`
  }
}

function rank(provider: string | undefined): number {
  if (provider === undefined) return Infinity
  const at = PREFERENCE.indexOf(provider)
  return at < 0 ? PREFERENCE.length : at
}

function toPrice({ input, output, ...cache }: Section['prices'][string]): Price {
  return { input, output, ...omitUndefined({ cachedInput: cache.cached_input, cacheWrite: cache.cache_write }) }
}
