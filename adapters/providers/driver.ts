import * as v from 'valibot'
import { definePlugin, defineService } from 'svc/sdk'
import type { ConfigSchema, Fetch, Spawn } from 'svc/sdk'
import type { CompletionEvent, CompletionRequest } from './completion.ts'

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
  /**
   * Of a driver that runs a program of this machine: what is missing and how to get it, `undefined` when it is there.
   * Asked for each list, so it answers in microseconds.
   */
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
  /**
   * The provider's id as configured, for failures; the driver's own name unless a section uses the driver under
   * another one.
   */
  readonly name: string
  readonly config: C
  readonly baseUrl: string
  readonly fetch: Fetch
  /** The key at this moment. Ask before each request; never keep it. */
  apiKey(): Promise<string | undefined>
}
/**
 * Failures are thrown as `UpstreamFailure`, classified; an abort rejects with the signal's reason. A client does not
 * retry,
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

/**
 * What is used when no model is named, and how much one request may hold: texts, and characters of all of them
 * together.
 */
export interface Embedding {
  readonly model: string
  readonly texts: number
  readonly chars: number
}
/**
 * `purpose`: what is looked for and what it is looked for in, for models that make a difference; a document when
 * absent.
 */
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
 * A client whose code is loaded with its first use, so that a driver nobody calls costs a start nothing. What the
 * loaded client can do has
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
  /**
   * The disposer stops new calls. Those that run end on the code they began with; only the end of the registry itself
   * aborts them.
   */
  add(driver: ProviderDriver): () => Promise<void>
}
export const Providers = defineService<ProviderRegistry>()('providers')

/** Turns one driver into a plugin. */
export function defineProvider<C extends ConfigSchema>(version: string, driver: ProviderDriver<C>) {
  return defineProviders(`provider-${driver.name}`, version, [driver])
}
/** What drivers may ask their plugin for beside the network. What they start ends with the plugin at the latest. */
export interface DriverDeps {
  readonly spawn: Spawn
}
/** Turns drivers that share one wire format into one plugin. */
export function defineProviders(
  name: string,
  version: string,
  drivers: readonly ProviderDriver[] | ((deps: DriverDeps) => readonly ProviderDriver[]),
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
