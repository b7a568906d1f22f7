import { KeptRows } from 'svc/internal'
import type { Catalog, CatalogModel } from './contract.ts'
import type { Target } from './aliases.ts'
import { priceAt } from './data.ts'
import type { Entry } from './data.ts'
import type { CatalogStore } from './store.ts'

type Held = { readonly entry: Entry; readonly origin: 'shipped' | 'registry' | 'custom' }
interface Contents {
  readonly models: ReadonlyMap<string, ReadonlyMap<string, Held>>
  /** The first provider of an id, which is its maker where the maker serves it. */
  readonly owners: ReadonlyMap<string, string>
  readonly undated: ReadonlyMap<string, string>
}
export interface ModelsDeps {
  readonly store: CatalogStore
  readonly shipped: () => Promise<readonly Entry[]>
  readonly now: () => Date
}

/** All known models: the shipped ones, overridden by the registry, overridden by custom ones. Read on first use. */
export class Models implements Catalog {
  readonly #deps: ModelsDeps
  readonly #contents = new KeptRows(() => this.#read())
  readonly #aliases = new KeptRows(() => this.#readAliases())

  constructor(deps: ModelsDeps) {
    this.#deps = deps
  }

  async ready(): Promise<void> {
    await Promise.all([this.#contents.get(), this.#aliases.get()])
  }
  /** What is in the store changed, here or elsewhere: it is read again when it is next asked for. */
  changed(): void {
    this.#contents.changed()
    this.#aliases.changed()
  }
  async aliasLookup(): Promise<(name: string) => Target | undefined> {
    await this.#aliases.get()
    return (name) => this.resolveAlias(name)
  }

  find(provider: string, model: string): CatalogModel | undefined {
    const { models, undated: dated } = this.#contents.last ?? nothing
    const own = models.get(provider)
    const held =
      own?.get(model) ?? own?.get(undated(model)) ?? own?.get(dated.get(`${provider} ${undated(model)}`) ?? '')
    return held && this.#toModel(held)
  }
  /** A model by an alias, by `provider/id`, or by its id alone: then its maker's, where several providers have it. */
  named(name: string): CatalogModel | undefined {
    const target = this.resolveAlias(name)
    if (target) return this.find(target.provider, target.model)
    const slash = name.indexOf('/')
    const owner = (this.#contents.last ?? nothing).owners.get(name)
    return (
      (slash > 0 ? this.find(name.slice(0, slash), name.slice(slash + 1)) : undefined) ??
      (owner === undefined ? undefined : this.find(owner, name))
    )
  }
  resolveAlias(name: string): Target | undefined {
    return this.aliases().get(name.toLowerCase())
  }
  list(provider?: string): readonly CatalogModel[] {
    const { models } = this.#contents.last ?? nothing
    const held =
      provider === undefined
        ? [...models.values()].flatMap((own) => [...own.values()])
        : [...(models.get(provider)?.values() ?? [])]
    const now = this.#deps.now()
    return held.map((one) => this.#toModel(one, now))
  }
  aliases(): ReadonlyMap<string, Target> {
    return this.#aliases.last ?? new Map()
  }
  aliasesOf({ provider, id }: CatalogModel): readonly string[] {
    return [...this.aliases()]
      .filter(([, target]) => target.provider === provider && target.model === id)
      .map(([alias]) => alias)
  }
  providers(): number {
    return (this.#contents.last ?? nothing).models.size
  }

  async #read(): Promise<Contents> {
    const { store } = this.#deps
    const [shipped, registry, custom] = await Promise.all([this.#deps.shipped(), store.registry(), store.custom()])
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
    return { models, owners, undated: dated }
  }
  async #readAliases(): Promise<ReadonlyMap<string, Target>> {
    const shipped = await import('./aliases.ts')
    const aliases = new Map(shipped.aliases)
    for (const { alias, target } of await this.#deps.store.aliases())
      if (target) aliases.set(alias, target)
      else aliases.delete(alias)
    return aliases
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

/** Before the first use. */
const nothing: Contents = { models: new Map(), owners: new Map(), undated: new Map() }

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
