import * as v from 'valibot'
import type { Price } from './contract.ts'

const usd = v.pipe(v.number(), v.minValue(0), v.maxValue(100_000))
const tokens = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000_000))
const rates = { input: usd, output: usd, cachedInput: v.exactOptional(usd), cacheWrite: v.exactOptional(usd) }

/** A price with when it holds. Of several the last one that holds counts. */
export const TimedPrice = v.object({
  ...rates,
  long: v.exactOptional(v.object({ aboveInput: tokens, ...rates })),
  request: v.exactOptional(usd),
  /** First day, UTC. */
  from: v.exactOptional(v.pipe(v.string(), v.isoDate())),
  /** Spans of minutes since midnight, UTC; the end is not part of a span. */
  minutes: v.exactOptional(v.array(v.tuple([v.number(), v.number()]))),
  /** On Monday to Friday only, UTC. */
  weekdays: v.exactOptional(v.literal(true)),
})
export type TimedPrice = v.InferOutput<typeof TimedPrice>

const known = v.nullable(v.boolean())
/** One model as it is stored: in the file that is shipped, and in the one that was fetched. */
export const Entry = v.object({
  provider: v.string(),
  id: v.string(),
  name: v.string(),
  context: v.nullable(tokens),
  output: v.nullable(tokens),
  tools: known,
  vision: known,
  thinking: known,
  /** Absent: it streams. */
  streaming: v.exactOptional(v.literal(false)),
  tier: v.picklist(['frontier', 'smart', 'balanced', 'fast', 'local', 'custom']),
  prices: v.nullable(v.array(TimedPrice)),
})
export type Entry = v.InferOutput<typeof Entry>

/** What is shipped: `version` names the packages it was made from. */
export const Shipped = v.object({ version: v.string(), entries: v.array(Entry) })
export type Shipped = v.InferOutput<typeof Shipped>

/** The price that holds at a moment; `undefined` before the first one does. */
export function priceAt(prices: readonly TimedPrice[], now: Date): Price | undefined {
  // Few prices depend on the time, and lists ask for those of a thousand models.
  let day: string | undefined
  const holds = (from: string): boolean => from <= (day ??= now.toISOString().slice(0, 10))
  const within = (minutes: readonly (readonly [number, number])[]): boolean => {
    const minute = now.getUTCHours() * 60 + now.getUTCMinutes()
    return minutes.some(([start, end]) => start <= minute && minute < end)
  }
  const found = prices.findLast(
    ({ from, minutes, weekdays }) =>
      (from === undefined || holds(from)) &&
      (!weekdays || now.getUTCDay() % 6 !== 0) &&
      (minutes === undefined || within(minutes)),
  )
  if (!found) return undefined
  const { from: _, minutes: __, weekdays: ___, ...price } = found
  return price
}
