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

// Four characters a token is the usual rule of thumb for English; an image counts as what the large vendors charge
// for a small one.
const CHARS_PER_TOKEN = 4
const IMAGE_TOKENS = 300
/** No model takes or gives this much in one call, so a larger figure is a defect of the provider. */
const MAX_TOKENS = 100_000_000

/** A rough count of tokens, for when nobody else counts them. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN)
}

/** A usage counted from characters and flagged as such. `outputChars` is the length of all that the model wrote. */
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

/** Whether a provider's figures can be believed: whole, not negative, not absurd, parts not larger than their whole. */
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

/** The counts of a vendor, as it names them or leaves them out. */
export interface TokenCounts {
  readonly output: number | null | undefined
  /** All input. Absent where the vendor counts what is beside the cache. */
  readonly input?: number | null | undefined
  readonly uncachedInput?: number | null | undefined
  readonly cachedInput?: number | null | undefined
  readonly cacheWrite?: number | null | undefined
  readonly thinking?: number | null | undefined
}

/**
 * The usage that a vendor's counts mean, or `undefined` when they are missing or cannot be believed. Details that do
 * not fit into their total are left out.
 */
export function usageOf(counts: TokenCounts): Usage | undefined {
  const cache = omitUndefined({
    cachedInput: counts.cachedInput ?? undefined,
    cacheWrite: counts.cacheWrite ?? undefined,
  })
  const { uncachedInput, output } = counts
  const isApart = uncachedInput != null
  const input = isApart ? uncachedInput + (cache.cachedInput ?? 0) + (cache.cacheWrite ?? 0) : counts.input
  if (input == null || output == null) return undefined
  const total = { input, output }
  if (!isPlausible(isApart ? { ...total, ...cache } : total) || (isApart && uncachedInput < 0)) return undefined
  const thinking = counts.thinking ?? undefined
  return {
    ...total,
    ...(isPlausible({ ...total, ...cache }) && cache),
    ...(thinking !== undefined && isPlausible({ ...total, thinking }) && { thinking }),
  }
}

/**
 * USD per million tokens, counted to a millionth of a dollar. What is read from a prompt cache or written to it costs
 * as other input where no price of its own is known.
 */
export interface Rates {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
}
export interface Price extends Rates {
  /** Holds for every token of a call whose input has more tokens than this. */
  readonly long?: Rates & { readonly aboveInput: number }
  /** USD for the call itself. */
  readonly request?: number
}

/**
 * What a call costs in billionths of a dollar, whole, so that any sum of them is exact. Rounded once, half up, by
 * less than a billionth for
 * a call. Thinking is output. `null` when nobody knows the price; that is never 0.
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
/** Of a dollar for a million tokens, which is billionths of a thousandth for one. */
const millionths = (usd: number): number => Math.round(usd * 1_000_000)
/** Billionths of a dollar as dollars; `null` stays. */
export function toUsd(nano: number): number
export function toUsd(nano: number | null): number | null
export function toUsd(nano: number | null): number | null {
  return nano === null ? null : nano / 1_000_000_000
}
