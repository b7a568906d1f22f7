import * as v from 'valibot'
import { definePlugin, defineService, readJson } from 'svc/sdk'
import type { ConfigSchema, Fetch, Spawn } from 'svc/sdk'

export interface CompletionRequest {
  readonly model: string
  readonly system: string
  readonly turns: readonly Turn[]
  readonly tools: readonly { readonly name: string; readonly description: string; readonly input: object }[]
  /** Upper limit of the answer in tokens. */
  readonly maxTokens?: number
  readonly temperature?: number
  /** Ask the model to think first, where it can. */
  readonly thinking?: boolean
  /** What the answer must be. A provider that cannot say so to its model ignores it; the caller checks the answer. */
  readonly responseFormat?: ResponseFormat
  /** Further fields for the provider, handed on as they are. They replace nothing that is said above. */
  readonly extra?: Readonly<Record<string, unknown>>
}
export type ResponseFormat =
  | { readonly type: 'json' }
  | {
      readonly type: 'json_schema'
      readonly name: string
      readonly schema: object
      readonly strict?: boolean | undefined
    }
export type Turn =
  | { readonly role: 'user'; readonly parts: readonly Part[] }
  /** `replay` is what this provider and model gave with its `end`, untouched; only while the turn it was made in lasts. */
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ToolCall[]; readonly replay?: string }
  | {
      readonly role: 'tool'
      readonly callId: string
      readonly tool: string
      readonly text: string
      readonly failed: boolean
    }
export type Part =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mime: string; readonly base64: string }
/** `args` is what the model wrote, parsed as JSON when it is JSON and the raw text when it is not. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly args: unknown
}
/** Tokens. `cachedInput` (read from the prompt cache) and `cacheWrite` (written to it) are parts of `input`, `thinking` part of `output`. `estimated` when the provider did not say. */
export interface Usage {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
  readonly thinking?: number
  readonly estimated?: boolean
}

/**
 * Zero or more text, thinking and call events, then exactly one end. A delta may hold several tokens. `replay` is what the provider has to
 * be given back with this answer when its calls are answered, such as signed thinking: opaque to everyone else, at most 1 MB.
 */
export type CompletionEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'thinking'; readonly delta: string }
  | { readonly type: 'call'; readonly call: ToolCall }
  | {
      readonly type: 'end'
      readonly stop: 'done' | 'length' | 'calls' | 'refused'
      readonly usage: Usage
      readonly replay?: string
    }

export interface ProviderDriver<C extends ConfigSchema = ConfigSchema> {
  /** The provider's id, such as `openai`; also its section `[providers.<name>]`. */
  readonly name: string
  readonly title: string
  /** Named for display and for the presence check; the driver never reads it. Absent: no key is needed. */
  readonly envVar?: string
  /** Other variables vendors' own tools take the key from; looked at in this order when `envVar` is not set. */
  readonly otherEnvVars?: readonly string[]
  /** The variable is there for other tools as well: having it does not make this the default provider. */
  readonly sharedKey?: true
  /** Variable with the address, for a vendor whose customers each have their own. */
  readonly addressVar?: string
  /** Where requests go unless the operator says otherwise. Absent: nothing leaves the process. */
  readonly baseUrl?: string
  /** Used when an agent asks for this provider without naming a model. */
  readonly defaultModel: string
  /** How it embeds. Absent: it cannot, or nobody knows. */
  readonly embedding?: Embedding
  /** What may stand in its section beside what every provider has. Fields that are not here are left to others. */
  readonly config: C
  /** Variables that fill those fields of `config` which the section leaves out; the first one that is set. */
  readonly configVars?: Readonly<Record<string, readonly string[]>>
  /** Of a driver that runs a program of this machine: what is missing and how to get it, `undefined` when it is there. Asked for each list, so it answers in microseconds. */
  lacks?(config: v.InferOutput<C>): string | undefined
  /** The address that its section stands for, such as that of a region. Asked when none is set. */
  address?(config: v.InferOutput<C>): string | undefined
  /** Signing in with a code that a person enters elsewhere (RFC 8628); the token that comes of it is the key. */
  signIn?(config: v.InferOutput<C>): DeviceSignIn
  connect(link: ProviderLink<v.InferOutput<C>>): ProviderClient
}
/** The addresses of an OAuth server, and as whom a token is asked for. */
export interface DeviceSignIn {
  readonly codeUrl: string
  readonly tokenUrl: string
  readonly clientId: string
  readonly scope: string
}
export interface ProviderLink<C> {
  /** The provider's id as configured, for failures; the driver's own name unless a section uses the driver under another one. */
  readonly name: string
  readonly config: C
  readonly baseUrl: string
  readonly fetch: Fetch
  /** The key at this moment. Ask before each request; never keep it. */
  apiKey(): Promise<string | undefined>
}
/**
 * Failures are thrown as `UpstreamFailure`, classified; an abort rejects with the signal's reason. A client does not retry,
 * does not read the environment, knows no prices and sees no sessions.
 */
export interface ProviderClient {
  complete(request: CompletionRequest, signal: AbortSignal): AsyncIterable<CompletionEvent>
  /** The ids of the models on offer, when the vendor can say. */
  models?(signal: AbortSignal): Promise<readonly string[]>
  /** One vector for each text, in their order. Fails as `complete` does. */
  embed?(request: EmbeddingRequest, signal: AbortSignal): Promise<Embeddings>
  /** A cheap call that proves the address and the key. */
  probe(signal: AbortSignal): Promise<{ readonly model: string }>
}

/** What is used when no model is named, and how much one request may hold: texts, and characters of all of them together. */
export interface Embedding {
  readonly model: string
  readonly texts: number
  readonly chars: number
}
/** `purpose`: what is looked for and what it is looked for in, for models that make a difference; a document when absent. */
export interface EmbeddingRequest {
  readonly model: string
  readonly texts: readonly string[]
  readonly purpose?: 'query' | 'document'
}
/** All vectors have the same length. */
export interface Embeddings {
  readonly vectors: readonly Float32Array[]
  readonly usage: { readonly input: number; readonly estimated?: boolean }
}

/**
 * A client whose code is loaded with its first use, so that a driver nobody calls costs a start nothing. What the loaded client can do has
 * to be said beforehand.
 */
export function lazyClient(
  load: () => Promise<ProviderClient>,
  can: { readonly models?: boolean; readonly embed?: boolean } = {},
): ProviderClient {
  let loaded: ProviderClient | undefined
  let loading: Promise<ProviderClient> | undefined
  const open = (): Promise<ProviderClient> =>
    (loading ??= load().then(
      (client) => (loaded = client),
      (error: unknown) => {
        loading = undefined
        throw error
      },
    ))
  return {
    complete(request, signal) {
      if (loaded) return loaded.complete(request, signal)
      let events: AsyncIterator<CompletionEvent> | undefined
      let left = false
      // No generator: every event would pass through it.
      const next = async (): Promise<IteratorResult<CompletionEvent>> => {
        events ??= (await open()).complete(request, signal)[Symbol.asyncIterator]()
        return left ? { done: true, value: undefined } : events.next()
      }
      return {
        [Symbol.asyncIterator]: () => ({
          next: () => (events && !left ? events.next() : next()),
          async return() {
            left = true
            await events?.return?.()
            return { done: true, value: undefined }
          },
        }),
      }
    },
    probe: async (signal) => {
      signal.throwIfAborted()
      return (await open()).probe(signal)
    },
    ...(can.models && { models: async (signal: AbortSignal) => (await (await open()).models?.(signal)) ?? [] }),
    ...(can.embed && {
      async embed(request: EmbeddingRequest, signal: AbortSignal) {
        const client = await open()
        if (!client.embed) throw new Error('the client cannot embed')
        return client.embed(request, signal)
      },
    }),
  }
}

export interface ProviderRegistry {
  /** The disposer stops new calls. Those that run end on the code they began with; only the end of the registry itself aborts them. */
  add(driver: ProviderDriver<any>): () => Promise<void>
}
export const Providers = defineService<ProviderRegistry>()('providers')

/** Turns one driver into a plugin. */
export function defineProvider<C extends ConfigSchema>(version: string, driver: ProviderDriver<C>) {
  return defineProviders(`provider-${driver.name}`, version, [driver])
}
/** What drivers may ask their plugin for beside the network. What they start ends with the plugin at the latest. */
export interface Doors {
  readonly spawn: Spawn
}
/** Turns drivers that share one wire format into one plugin. */
export function defineProviders(
  name: string,
  version: string,
  drivers: readonly ProviderDriver<any>[] | ((doors: Doors) => readonly ProviderDriver<any>[]),
) {
  return definePlugin({
    name,
    version,
    config: v.object({}),
    requires: { providers: Providers },
    setup(ctx) {
      for (const driver of typeof drivers === 'function' ? drivers({ spawn: ctx.spawn }) : drivers)
        ctx.own(`provider ${driver.name}`, ctx.services.providers.add(driver))
      return {}
    },
  })
}

/** What a model wrote as arguments of a call: parsed when it is JSON, `{}` for nothing, and the raw text when it is not; the tool's parser tells the model what is wrong. */
export function readArgs(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return readJson(text)
  } catch {
    return text /* as said above */
  }
}

/** The pictures that models with eyes take. */
export const pictureTypes: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

/** A conversation written down with its speakers, for models that take a text and no turns. */
export function transcriptOf(turns: readonly Turn[]): string {
  return turns
    .map(written)
    .filter((text) => text !== '')
    .join('\n\n')
}
function written(turn: Turn): string {
  if (turn.role === 'user') return `User: ${saidBy(turn)}`
  if (turn.role === 'tool') return `Result of ${turn.tool}${turn.failed ? ' (failed)' : ''}: ${turn.text}`
  const calls = turn.calls.map(
    ({ name, args }) => `[calls ${name} ${typeof args === 'string' ? args : JSON.stringify(args ?? {})}]`,
  )
  return turn.text === '' && calls.length === 0
    ? ''
    : `Assistant: ${[turn.text, ...calls].filter((text) => text !== '').join('\n')}`
}
/** What the user said, when that is nothing but text: many servers read a string and no list. `undefined` where there is an image. */
export function plainText(parts: readonly Part[]): string | undefined {
  let text = ''
  for (const part of parts) {
    if (part.type !== 'text') return undefined
    text += text !== '' && part.text !== '' ? `\n\n${part.text}` : part.text
  }
  return text
}
/** What the user said as one text. */
export function saidBy(turn: Extract<Turn, { role: 'user' }>): string {
  return turn.parts.map((part) => (part.type === 'text' ? part.text : '[picture]')).join('\n')
}

// Four characters a token is the usual rule of thumb for English; an image counts as what the large vendors charge for a small one.
const CHARS_PER_TOKEN = 4
const IMAGE_TOKENS = 300
/** No model takes or gives this much in one call, so a larger figure is a defect of the provider. */
const MOST_TOKENS = 100_000_000

/** A rough count of tokens, for when nobody else counts them. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN)
}

/** A usage counted from characters and flagged as such. `outputChars` is the length of all that the model wrote. */
export function estimateUsage(request: CompletionRequest, outputChars: number): Usage {
  let chars = request.system.length
  let images = 0
  for (const turn of request.turns) {
    if (turn.role === 'user')
      for (const part of turn.parts) {
        if (part.type === 'text') chars += part.text.length
        else images++
      }
    else chars += turn.text.length
    if (turn.role === 'assistant')
      for (const call of turn.calls) chars += call.name.length + JSON.stringify(call.args ?? null).length
  }
  for (const tool of request.tools)
    chars += tool.name.length + tool.description.length + JSON.stringify(tool.input).length
  return {
    input: Math.ceil(chars / CHARS_PER_TOKEN) + images * IMAGE_TOKENS,
    output: Math.ceil(outputChars / CHARS_PER_TOKEN),
    estimated: true,
  }
}

/** Whether a provider's figures can be believed: whole, not negative, not absurd, parts not larger than their whole. */
export function plausible(usage: Usage): boolean {
  const count = (n: number | undefined, most: number) => n === undefined || (Number.isInteger(n) && n >= 0 && n <= most)
  return (
    count(usage.input, MOST_TOKENS) &&
    count(usage.output, MOST_TOKENS) &&
    count(usage.cachedInput, usage.input) &&
    count(usage.cacheWrite, usage.input - (usage.cachedInput ?? 0)) &&
    count(usage.thinking, usage.output)
  )
}

/** USD per million tokens, counted to a millionth of a dollar. What is read from a prompt cache or written to it costs as other input where no price of its own is known. */
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
 * What a call costs in billionths of a dollar, whole, so that any sum of them is exact. Rounded once, half up, by less than a billionth for
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
