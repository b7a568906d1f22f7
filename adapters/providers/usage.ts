import { omitUndefined } from 'svc/sdk'
import type { CompletionRequest, Turn } from './completion.ts'

/**
 * Tokens. `cachedInput` (read from the prompt cache) and `cacheWrite` (written to it) are parts of `input`,
 * `thinking` part of `output`. `estimated` when the provider did not say.
 */
export interface Usage {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
  readonly thinking?: number
  readonly estimated?: boolean
}

// Four characters a token is a common rule of thumb for English. An image counts as much as the large vendors charge
// for a small one.
const CHARS_PER_TOKEN = 4
const IMAGE_TOKENS = 300
/** No model reads or writes this much in one call: larger counts are an error of the vendor. */
const MAX_TOKENS = 100_000_000

/** A rough number of tokens, for vendors that do not count them. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN)
}

/** A usage estimated from characters, and flagged as such. `outputChars` is the length of the whole answer. */
export function estimateUsage(request: CompletionRequest, outputChars: number): Usage {
  let chars = request.system.length
  let images = 0
  for (const turn of request.turns) {
    chars += charsOf(turn)
    if (turn.role === 'user') images += turn.parts.filter(({ type }) => type !== 'text').length
  }
  for (const tool of request.tools)
    chars += tool.name.length + tool.description.length + JSON.stringify(tool.input).length
  return {
    input: Math.ceil(chars / CHARS_PER_TOKEN) + images * IMAGE_TOKENS,
    output: Math.ceil(outputChars / CHARS_PER_TOKEN),
    estimated: true,
  }
}

function charsOf(turn: Turn): number {
  if (turn.role === 'user')
    return turn.parts.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0)
  if (turn.role === 'tool') return turn.text.length
  return turn.calls.reduce(
    (sum, { name, args }) => sum + name.length + JSON.stringify(args ?? null).length,
    turn.text.length,
  )
}

/** Whether counts are integers within sensible limits, and details are not larger than their totals. */
export function isPlausible(usage: Usage): boolean {
  const count = (n: number | undefined, max: number) => n === undefined || (Number.isInteger(n) && n >= 0 && n <= max)
  return (
    count(usage.input, MAX_TOKENS) &&
    count(usage.output, MAX_TOKENS) &&
    count(usage.cachedInput, usage.input) &&
    count(usage.cacheWrite, usage.input - (usage.cachedInput ?? 0)) &&
    count(usage.thinking, usage.output)
  )
}

/** The counts of a vendor; those it leaves out are absent. */
export interface TokenCounts {
  readonly output: number | null | undefined
  /** All input. Absent where the vendor counts cached tokens separately. */
  readonly input?: number | null | undefined
  readonly uncachedInput?: number | null | undefined
  readonly cachedInput?: number | null | undefined
  readonly cacheWrite?: number | null | undefined
  readonly thinking?: number | null | undefined
}

/**
 * The usage from a vendor's counts; `undefined` when they are missing or implausible. Details larger than their total
 * are left out.
 */
export function usageOf(counts: TokenCounts): Usage | undefined {
  const cache = omitUndefined({
    cachedInput: counts.cachedInput ?? undefined,
    cacheWrite: counts.cacheWrite ?? undefined,
  })
  const { uncachedInput, output } = counts
  const isSeparate = uncachedInput != null
  const input = isSeparate ? uncachedInput + (cache.cachedInput ?? 0) + (cache.cacheWrite ?? 0) : counts.input
  if (input == null || output == null) return undefined
  const total = { input, output }
  if (!isPlausible(isSeparate ? { ...total, ...cache } : total) || (isSeparate && uncachedInput < 0)) return undefined
  const thinking = counts.thinking ?? undefined
  return {
    ...total,
    ...(isPlausible({ ...total, ...cache }) && cache),
    ...(thinking !== undefined && isPlausible({ ...total, thinking }) && { thinking }),
  }
}

/**
 * USD per million tokens, exact to a millionth of a dollar. Tokens read from a prompt cache or written to it cost the
 * same as other input where they have no price of their own.
 */
export interface Rates {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
}
export interface Price extends Rates {
  /** The rates of all tokens of a call whose input is longer than this. */
  readonly long?: Rates & { readonly aboveInput: number }
  /** USD for the call itself. */
  readonly request?: number
}

/**
 * The cost of a call in billionths of a dollar, an integer, so that sums are exact. Rounded once, half up. Thinking
 * counts as output. `null` for an unknown price, which is never 0.
 */
export function costNano(price: Price | undefined, usage: Usage): number | null {
  if (!price) return null
  const { input, output, cachedInput = 0, cacheWrite = 0 } = usage
  const plain = Math.max(0, input - cachedInput - cacheWrite)
  const rates = price.long && input > price.long.aboveInput ? price.long : price
  return Math.round(
    (plain * millionths(rates.input) +
      cachedInput * millionths(rates.cachedInput ?? rates.input) +
      cacheWrite * millionths(rates.cacheWrite ?? rates.input) +
      output * millionths(rates.output)) /
      1000 +
      (price.request ?? 0) * 1_000_000_000,
  )
}
/** USD per million tokens as an integer: thousandths of a billionth of a dollar per token. */
const millionths = (usd: number): number => Math.round(usd * 1_000_000)
/** Converts billionths of a dollar to dollars; `null` stays `null`. */
export function toUsd(nano: number): number
export function toUsd(nano: number | null): number | null
export function toUsd(nano: number | null): number | null {
  return nano === null ? null : nano / 1_000_000_000
}
