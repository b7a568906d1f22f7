import type { Catalog, CatalogModel } from './contract.ts'
import { aliases as shippedAliases } from './aliases.ts'
import type { Target } from './aliases.ts'
import { priceAt } from './data.ts'
import type { Entry } from './data.ts'
import type { CatalogStore } from './store.ts'

type Held = { readonly entry: Entry; readonly origin: 'shipped' | 'registry' | 'custom' }
export interface ModelsDeps {
  readonly store: CatalogStore
  readonly shipped: () => Promise<readonly Entry[]>
  readonly now: () => Date
}

/** All known models: the shipped ones, overridden by the registry, overridden by custom ones. Read on first use. */
export class Models implements Catalog {
  readonly #deps: ModelsDeps
  #reading: Promise<void> | undefined
  #models = new Map<string, Map<string, Held>>()
  /** The first provider of an id, which is its maker where the maker serves it. */
  #owners = new Map<string, string>()
  #undated = new Map<string, string>()
  #aliases: ReadonlyMap<string, Target> = shippedAliases
  #naming: Promise<void> | undefined

  constructor(deps: ModelsDeps) {
    this.#deps = deps
  }

  ready(): Promise<void> {
    return (this.#reading ??= this.#read().catch((error: unknown) => {
      this.#reading = undefined
      throw error
    }))
  }
  /** Reads again what changed in the store. */
  async refresh(): Promise<void> {
    this.#naming = undefined
    this.#reading = this.#read()
    await this.#reading
  }
  async aliasLookup(): Promise<(name: string) => Target | undefined> {
    await this.#named()
    return (name) => this.resolveAlias(name)
  }

  find(provider: string, model: string): CatalogModel | undefined {
    const own = this.#models.get(provider)
    const held =
      own?.get(model) ?? own?.get(undated(model)) ?? own?.get(this.#undated.get(`${provider} ${undated(model)}`) ?? '')
    return held && this.#toModel(held)
  }
  /** A model by an alias, by `provider/id`, or by its id alone: then its maker's, where several providers have it. */
  named(name: string): CatalogModel | undefined {
    const target = this.resolveAlias(name)
    if (target) return this.find(target.provider, target.model)
    const slash = name.indexOf('/')
    const owner = this.#owners.get(name)
    return (
      (slash > 0 ? this.find(name.slice(0, slash), name.slice(slash + 1)) : undefined) ??
      (owner === undefined ? undefined : this.find(owner, name))
    )
  }
  resolveAlias(name: string): Target | undefined {
    return this.#aliases.get(name.toLowerCase())
  }
  list(provider?: string): readonly CatalogModel[] {
    const held =
      provider === undefined
        ? [...this.#models.values()].flatMap((models) => [...models.values()])
        : [...(this.#models.get(provider)?.values() ?? [])]
    const now = this.#deps.now()
    return held.map((one) => this.#toModel(one, now))
  }
  aliases(): ReadonlyMap<string, Target> {
    return this.#aliases
  }
  aliasesOf({ provider, id }: CatalogModel): readonly string[] {
    return [...this.#aliases]
      .filter(([, target]) => target.provider === provider && target.model === id)
      .map(([alias]) => alias)
  }
  providers(): number {
    return this.#models.size
  }

  async #read(): Promise<void> {
    const { store } = this.#deps
    const [shipped, registry, custom] = await Promise.all([
      this.#deps.shipped(),
      store.registry(),
      store.custom(),
      this.#named(),
    ])
    const models = new Map<string, Map<string, Held>>()
    const put = (entry: Entry, origin: Held['origin']): void => {
      let own = models.get(entry.provider)
      if (!own) models.set(entry.provider, (own = new Map()))
      own.set(entry.id, { entry, origin })
    }
    for (const entry of shipped) put(entry, 'shipped')
    for (const entry of registry?.entries ?? [])
      put(merged(models.get(entry.provider)?.get(entry.id)?.entry, entry), 'registry')
    for (const entry of custom) put(entry, 'custom')
    const owners = new Map<string, string>()
    const dated = new Map<string, string>()
    for (const [provider, own] of models) {
      for (const id of own.keys()) {
        if (!owners.has(id)) owners.set(id, provider)
        // The newest date comes last in the order of ids.
        if (undated(id) !== id) dated.set(`${provider} ${undated(id)}`, id)
      }
    }
    this.#models = models
    this.#owners = owners
    this.#undated = dated
  }
  #named(): Promise<void> {
    return (this.#naming ??= (async () => {
      const aliases = new Map(shippedAliases)
      for (const { alias, target } of await this.#deps.store.aliases())
        if (target) aliases.set(alias, target)
        else aliases.delete(alias)
      this.#aliases = aliases
    })().catch((error: unknown) => {
      this.#naming = undefined
      throw error
    }))
  }

  #toModel({ entry, origin }: Held, now = this.#deps.now()): CatalogModel {
    return {
      id: entry.id,
      provider: entry.provider,
      name: entry.name,
      contextWindow: entry.context,
      maxOutputTokens: entry.output,
      price: (entry.prices && priceAt(entry.prices, now)) ?? null,
      supports: {
        tools: entry.tools,
        vision: entry.vision,
        streaming: entry.streaming ?? true,
        thinking: entry.thinking,
      },
      tier: entry.tier,
      origin,
    }
  }
}

/** An id without its date: vendors serve dated forms of a model at its price. */
function undated(id: string): string {
  return id.replace(/(-latest|[-@]\d{8}|-\d{4}-\d{2}-\d{2})$/, '')
}

/**
 * The registry is newer than the shipped data, so it wins. Only when its list price equals the shipped one does the
 * shipped price stay, with hours and lengths that a registry does not have.
 */
function merged(shipped: Entry | undefined, entry: Entry): Entry {
  if (!shipped) return entry
  const [ours, theirs] = [shipped.prices?.[0], entry.prices?.[0]]
  const same =
    ours !== undefined && theirs !== undefined && ours.input === theirs.input && ours.output === theirs.output
  return {
    ...shipped,
    name: entry.name,
    context: entry.context ?? shipped.context,
    output: entry.output ?? shipped.output,
    tools: entry.tools ?? shipped.tools,
    vision: entry.vision ?? shipped.vision,
    thinking: entry.thinking ?? shipped.thinking,
    ...(same || theirs === undefined ? {} : { prices: entry.prices, tier: entry.tier }),
  }
}
