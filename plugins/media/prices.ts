import { costNano } from 'svc/providers'
import type { MediaUsage, Price } from 'svc/providers'

/** USD: `input` and `output` for a million tokens, the others for one picture, a million characters and a minute. */
export interface MediaPrice {
  readonly input?: number | undefined
  readonly output?: number | undefined
  /** A million tokens of words beside pictures, where they cost less than `output`. */
  readonly words?: number | undefined
  readonly image?: number | undefined
  readonly million_chars?: number | undefined
  readonly minute?: number | undefined
  /** More tokens than a picture takes, with the thoughts about it; by its quality when absent. */
  readonly most_tokens?: number | undefined
  /** The vendor counts otherwise and does not tell its count: this comes close. */
  readonly estimated?: boolean | undefined
}
/** What a call asks for, or came to. */
export interface MediaAmount {
  readonly images?: number
  readonly chars?: number
  readonly seconds?: number
  readonly usage?: MediaUsage
}
export interface MediaCost {
  /** Billionths of a dollar; `null` when unknown. */
  readonly nano: number | null
  readonly estimated: boolean
}

/**
 * Source: https://ai.google.dev/gemini-api/docs/pricing; all but Nano Banana 2.1, which it does not have yet, are held to
 * `@pydantic/genai-prices`.
 */
const gemini = {
  'gemini-nano-banana-2.1': { input: 1.5, output: 30, words: 7.5, most_tokens: 6_000 },
  'gemini-3-pro-image': { input: 2, output: 120, words: 12, most_tokens: 6_000 },
  'gemini-3-pro-image-preview': { input: 2, output: 120, words: 12, most_tokens: 6_000 },
  'gemini-3.1-flash-image': { input: 0.5, output: 60, words: 3, most_tokens: 6_000 },
  'gemini-3.1-flash-image-preview': { input: 0.5, output: 60, words: 3, most_tokens: 6_000 },
  'gemini-3.1-flash-lite-image': { input: 0.25, output: 30, words: 1.5, most_tokens: 6_000 },
  'gemini-2.5-flash-image': { input: 0.3, output: 30, words: 2.5, most_tokens: 6_000 },
} satisfies Record<string, MediaPrice>
const pricesOf = (provider: string, models: Readonly<Record<string, MediaPrice>>): Record<string, MediaPrice> =>
  Object.fromEntries(Object.entries(models).map(([model, price]) => [`${provider}/${model}`, price]))

/**
 * Prices by `provider/model`. What is written costs as pictures, and what is read as text or, in transcriptions, as
 * sound: vendors do not always tell them apart, and no other kind is sent. Held to
 * `@pydantic/genai-prices` by a test, but for speech, which it does not have: `plugins.media.prices` corrects it.
 */
export const prices: Readonly<Record<string, MediaPrice>> = {
  'openai/gpt-image-2': { input: 5, output: 30 },
  'openai/gpt-image-1.5': { input: 5, output: 32 },
  'openai/gpt-image-1': { input: 5, output: 40 },
  'openai/gpt-image-1-mini': { input: 2, output: 8 },
  'openai/tts-1': { million_chars: 15 },
  'openai/tts-1-hd': { million_chars: 30 },
  // Billed by tokens of sound, some 0.015 USD a minute; 750 characters take a minute or less.
  'openai/gpt-4o-mini-tts': { million_chars: 20.6, estimated: true },
  'openai/whisper-1': { minute: 0.006 },
  'openai/gpt-4o-transcribe': { input: 6, output: 10, minute: 0.02 },
  'openai/gpt-4o-mini-transcribe': { input: 3, output: 5, minute: 0.01 },
  'groq/whisper-large-v3': { minute: 0.111 / 60 },
  'groq/whisper-large-v3-turbo': { minute: 0.04 / 60 },
  'mistral/voxtral-mini-latest': { minute: 0.18 / 60 },
  'mistral/voxtral-mini-2602': { minute: 0.18 / 60 },
  ...pricesOf('gemini', gemini),
  ...pricesOf('vertex-ai', gemini),
}

/** More than one picture of the best quality takes, in tokens. */
const IMAGE_TOKENS = { low: 1_000, medium: 4_000, high: 16_000 } as const
/** No recording that a vendor accepts has fewer bytes in a second. */
const MIN_BYTES_PER_SECOND = 1_000

/** The price of a model; a dated form of a model costs what the model costs. */
export function priceOf(
  own: Readonly<Record<string, MediaPrice>>,
  provider: string,
  model: string,
): MediaPrice | undefined {
  const name = `${provider}/${model}`
  const undated = name.replace(/-\d{4}-\d{2}-\d{2}$/, '')
  return own[name] ?? prices[name] ?? own[undated] ?? prices[undated]
}

/** More tokens than a request for pictures takes. */
export function imageTokens(
  prompt: string,
  count: number,
  quality: string | undefined,
  price?: MediaPrice,
): NonNullable<MediaUsage['tokens']> {
  const each = price?.most_tokens ?? ofQuality(quality)
  // A token is hardly ever less than a character.
  return { input: prompt.length + 100, output: each * count }
}
const ofQuality = (quality: string | undefined): number =>
  quality === 'low' || quality === 'medium' ? IMAGE_TOKENS[quality] : IMAGE_TOKENS.high
/** The longest that a recording of this size can be. */
export const longestSeconds = (bytes: number): number => Math.ceil(bytes / MIN_BYTES_PER_SECOND)

/** What an amount costs. `tokenPrice`: what the operator set for the model. */
export function costOf(price: MediaPrice | undefined, tokenPrice: Price | undefined, amount: MediaAmount): MediaCost {
  const estimated = price?.estimated ?? false
  const { tokens, seconds } = amount.usage ?? {}
  const perToken = tokenPrice ?? tokenPriceOf(price)
  if (tokens && perToken)
    return { nano: tokensCost(tokens, perToken, tokenPrice ? undefined : price?.words), estimated }
  const counted = [
    [price?.image, amount.images],
    [price?.million_chars, amount.chars === undefined ? undefined : amount.chars / 1_000_000],
  ] as const
  for (const [usd, count] of counted)
    if (usd !== undefined && count !== undefined) return { nano: nano(usd * count), estimated }
  const heard = seconds ?? amount.seconds
  if (price?.minute === undefined || heard === undefined) return { nano: null, estimated }
  return { nano: nano((price.minute * heard) / 60), estimated: seconds === undefined }
}
/** `words`: USD for a million tokens of words, where they do not cost what pictures do. */
function tokensCost(
  { input, output, words: written = 0 }: NonNullable<MediaUsage['tokens']>,
  price: Price,
  words: number | undefined,
): number | null {
  if (words === undefined) return costNano(price, { input, output })
  const apart = Math.min(output, written)
  const drawn = costNano(price, { input, output: output - apart })
  return drawn === null ? null : drawn + nano((words * apart) / 1_000_000)
}
function tokenPriceOf(price: MediaPrice | undefined): Price | undefined {
  return price?.input === undefined ? undefined : { input: price.input, output: price.output ?? price.input }
}
const nano = (usd: number): number => Math.round(usd * 1_000_000_000)
