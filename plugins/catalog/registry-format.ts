import * as v from 'valibot'
import type { Entry, TimedPrice } from './data.ts'

const usd = v.pipe(v.number(), v.minValue(0), v.maxValue(100_000))
const limit = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1_000_000_000))
const text = v.pipe(v.string(), v.minLength(1), v.maxLength(256))
const cost = { input: usd, output: usd, cache_read: v.optional(usd), cache_write: v.optional(usd) }

const Model = v.object({
  id: text,
  name: v.optional(text),
  reasoning: v.optional(v.boolean()),
  tool_call: v.optional(v.boolean()),
  modalities: v.optional(
    v.object({ input: v.optional(v.array(v.string()), []), output: v.optional(v.array(v.string()), []) }),
  ),
  cost: v.optional(v.object({ ...cost, context_over_200k: v.optional(v.object(cost)) })),
  limit: v.optional(v.object({ context: v.optional(limit), output: v.optional(limit) })),
})
const Section = v.object({ id: text, name: v.optional(text), models: v.record(v.string(), Model) })
/** The format of models.dev: sections by the registry's own names of providers. Unknown fields are ignored. */
const Registry = v.record(v.string(), Section)

export type RegistryModel = Omit<Entry, 'provider' | 'tier'>
export interface RegistrySection {
  readonly id: string
  readonly models: readonly RegistryModel[]
}

/** Reads a registry in the format of models.dev. Throws a valibot error that names the first field that is wrong. */
export function readRegistry(data: unknown): readonly RegistrySection[] {
  return Object.values(v.parse(Registry, data)).map(({ id, models }) => ({
    id,
    models: Object.values(models)
      .filter(speaks)
      .map((model) => ({
        id: model.id,
        name: model.name ?? model.id,
        context: model.limit?.context || null,
        output: model.limit?.output || null,
        tools: model.tool_call ?? null,
        vision: model.modalities === undefined ? null : model.modalities.input.includes('image'),
        thinking: model.reasoning ?? null,
        prices: model.cost === undefined ? null : [toPrice(model.cost)],
      })),
  }))
}

/** Models that answer in text. */
const speaks = ({ modalities }: v.InferOutput<typeof Model>): boolean =>
  modalities === undefined || modalities.output.length === 0 || modalities.output.includes('text')

type Cost = {
  readonly input: number
  readonly output: number
  readonly cache_read?: number | undefined
  readonly cache_write?: number | undefined
}
const toRates = ({ input, output, cache_read, cache_write }: Cost) => ({
  input,
  output,
  ...(cache_read !== undefined && { cachedInput: cache_read }),
  ...(cache_write !== undefined && { cacheWrite: cache_write }),
})
const toPrice = (cost: NonNullable<v.InferOutput<typeof Model>['cost']>): TimedPrice => ({
  ...toRates(cost),
  ...(cost.context_over_200k && { long: { aboveInput: 200_000, ...toRates(cost.context_over_200k) } }),
})
