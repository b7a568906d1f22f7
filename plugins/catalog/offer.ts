import type { Entry, TimedPrice } from './data.ts'
import type { RegistrySection } from './registry-format.ts'
import { sources, unfit } from './sources.ts'
import type { Source } from './sources.ts'
import { local, tierOf } from './tier.ts'

/** Whether a model is one to talk to, and its id one that a request can be made with. */
export function isUsableModel(source: Pick<Source, 'ids'> | undefined, id: string): boolean {
  return !unfit.test(id.toLowerCase()) && (source?.ids?.test(id) ?? true)
}

/**
 * A zero in a registry means free only for offers known to be free; elsewhere it means a subscription or an unknown
 * price.
 */
export function knownPrices(provider: string, id: string, prices: readonly TimedPrice[] | null): TimedPrice[] | null {
  const zero = prices?.every(({ input, output }) => input === 0 && output === 0) ?? true
  return prices && (!zero || local.has(provider) || id.endsWith(':free')) ? [...prices] : null
}

/** The models of a fetched registry, under our names of providers. An unknown provider keeps the registry's name. */
export function toEntries(sections: readonly RegistrySection[]): readonly Entry[] {
  return sections.flatMap(({ id: section, models }) => {
    const source = sources.find((one) => one.models.includes(section) || one.registry?.includes(section))
    const provider = source?.provider ?? section
    if (local.has(provider) || !/^[a-z0-9][a-z0-9._-]{0,63}$/.test(provider)) return []
    return models
      .filter(({ id }) => isUsableModel(source, id))
      .map((model) => {
        const prices = knownPrices(provider, model.id, model.prices)
        return { ...model, provider, prices, tier: tierOf(provider, model.id, prices?.at(-1)?.output) }
      })
  })
}
