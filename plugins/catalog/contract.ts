import { defineService, notify, transform } from 'svc/sdk'

/**
 * USD per million tokens. `cachedInput` is input read from a prompt cache, `cacheWrite` input written to it; absent:
 * as `input`.
 */
export interface Rates {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
}
/** What a call costs at this moment. */
export interface Price extends Rates {
  /** Applies to every token of a call whose input has more tokens than this. */
  readonly long?: Rates & { readonly aboveInput: number }
  /** USD for the call itself. */
  readonly request?: number
}
export type Tier = 'frontier' | 'smart' | 'balanced' | 'fast' | 'local' | 'custom'

/** What is known of one model of one provider. `null` means unknown, never zero. */
export interface CatalogModel {
  /** As the provider's API expects it; may contain slashes. */
  readonly id: string
  readonly provider: string
  readonly name: string
  /** Tokens. */
  readonly contextWindow: number | null
  /** Tokens. */
  readonly maxOutputTokens: number | null
  readonly price: Price | null
  readonly supports: {
    readonly tools: boolean | null
    readonly vision: boolean | null
    readonly streaming: boolean
    readonly thinking: boolean | null
  }
  readonly tier: Tier
  /**
   * Its origin: shipped with the daemon, fetched from the remote registry, added over the API, or listed by its
   * provider.
   */
  readonly origin: 'shipped' | 'registry' | 'custom' | 'provider'
}

/**
 * The models that are known, whether or not they can be used now. Everything but `ready` needs `ready` to have
 * settled once.
 */
export interface Catalog {
  /** Reads the data on first use; settles at once afterwards. */
  ready(): Promise<void>
  /** By the id of requests; an unknown dated form of a known id is that model. Costs a map lookup. */
  find(provider: string, model: string): CatalogModel | undefined
  /** Targets of aliases, without reading the models. */
  aliasLookup(): Promise<(name: string) => { readonly provider: string; readonly model: string } | undefined>
  /** The target of an alias. Names are compared case-insensitively. */
  resolveAlias(name: string): { readonly provider: string; readonly model: string } | undefined
  /** Every model, or those of one provider, in a fixed order. */
  list(provider?: string): readonly CatalogModel[]
}
export const Catalog = defineService<Catalog>()('catalog')

/** The providers that can be used now, and models that only their provider knows. Applied when models are listed. */
export interface ModelsListing {
  readonly usable: ReadonlySet<string>
  readonly models: readonly CatalogModel[]
}
/** Models are being listed: a listener adds what can be used now and models that only a provider knows of. */
export const ModelsListed = transform<ModelsListing>('catalog:models-listed')

/** What is known of models or aliases changed: a model added over the API, an alias, the remote registry. */
export const CatalogChanged = notify<{ readonly because: 'alias' | 'custom' | 'registry' }>('catalog:changed')
