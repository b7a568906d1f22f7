import { defineService, notify } from 'svc/sdk'

/** USD per million tokens. `cachedInput` is what input read from a prompt cache costs, `cacheWrite` what writing to it costs; absent: as `input`. */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
}
export type Tier = 'frontier' | 'smart' | 'balanced' | 'fast' | 'local' | 'custom'

/** What is known of one model of one provider. `null` where nobody knows; it is never a zero. */
export interface CatalogModel {
  /** As the provider's API takes it; it may hold slashes. */
  readonly id: string
  readonly provider: string
  readonly name: string
  /** Tokens. */
  readonly contextWindow: number | null
  /** Tokens. */
  readonly maxOutputTokens: number | null
  readonly price: Price | null
  readonly supports: { readonly tools: boolean | null; readonly vision: boolean | null; readonly streaming: boolean; readonly thinking: boolean | null }
  readonly tier: Tier
  /** Where it comes from: shipped with the daemon, fetched from the remote registry, or added over the API. */
  readonly origin: 'shipped' | 'registry' | 'custom'
}

/** The models that are known, whether or not they can be used now. Everything but `ready` needs `ready` to have settled once. */
export interface Catalog {
  /** Reads the data on first use; settles at once afterwards. */
  ready(): Promise<void>
  /** By the ids that requests are made with, dated and `-latest` forms of an id included. Takes a map's time. */
  find(provider: string, model: string): CatalogModel | undefined
  /** What a short name stands for. Names are compared without regard to case. */
  resolveAlias(name: string): { readonly provider: string; readonly model: string } | undefined
  /** Every model, or those of one provider, in a fixed order. */
  list(provider?: string): readonly CatalogModel[]
}
export const Catalog = defineService<Catalog>()('catalog')

/** What is known of models or aliases changed: a model added over the API, an alias, the remote registry. */
export const CatalogChanged = notify<{ readonly because: 'alias' | 'custom' | 'registry' }>('catalog:changed')
