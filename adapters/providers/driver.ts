import * as v from 'valibot'
import { definePlugin, defineService, omitUndefined } from 'svc/sdk'
import type { ConfigSchema, Fetch, Spawn } from 'svc/sdk'
import type { CompletionEvent, CompletionRequest } from './completion.ts'
import { lazyMedia } from './media.ts'
import type { MediaClient, MediaKind, MediaOffer } from './media.ts'

export interface ProviderDriver<C extends ConfigSchema = ConfigSchema> {
  /** The provider's id, such as `openai`; also its section `[providers.<name>]`. */
  readonly name: string
  readonly title: string
  /** The versions of the interface it is written for, as in `definePlugin`. */
  readonly apiVersion?: string
  /** The environment variable with the key. The host reads it, the driver never does. Absent: no key is needed. */
  readonly envVar?: string
  /** Variables the vendor's own tools read the key from; tried in this order when `envVar` is not set. */
  readonly otherEnvVars?: readonly string[]
  /** The variable is also used by other tools: that it is set does not make this the default provider. */
  readonly sharedKey?: true
  /** The variable with the address, for vendors whose customers each have an address of their own. */
  readonly addressVar?: string
  /** Where requests go unless the operator configures another address. Absent: nothing leaves the process. */
  readonly baseUrl?: string
  /** The model of an agent that names this provider and no model. */
  readonly defaultModel: string
  /** The default model and the limits for embeddings. Absent: it has none, or they are unknown. */
  readonly embedding?: Embedding
  /** What it makes beside text. Tools for it are offered to agents once the provider has its key. */
  readonly media?: MediaOffer
  /** The keys of its section beside those that every provider has. */
  readonly config: C
  /** Variables for keys of `config` that the section leaves out; the first one that is set. */
  readonly configVars?: Readonly<Record<string, readonly string[]>>
  /**
   * For a driver that runs a local program: what is missing and how to install it; `undefined` when nothing is.
   * Called for each list of providers, so it has to return within microseconds.
   */
  missingRequirement?(config: v.InferOutput<C>): string | undefined
  /** The address that follows from its section, such as that of a region. Called when no address is configured. */
  address?(config: v.InferOutput<C>): string | undefined
  /** Sign-in with a code that a person enters in a browser (RFC 8628). The access token becomes the key. */
  signIn?(config: v.InferOutput<C>): DeviceSignIn
  connect(link: ProviderLink<v.InferOutput<C>>): ProviderClient
}
/** The endpoints of an OAuth server and the client that requests a token. */
export interface DeviceSignIn {
  readonly codeUrl: string
  readonly tokenUrl: string
  readonly clientId: string
  readonly scope: string
}
export interface ProviderLink<C> {
  /** The provider's id as configured, for failures. A section may use a driver under another name than its own. */
  readonly name: string
  readonly config: C
  readonly baseUrl: string
  readonly fetch: Fetch
  /** The current key. Call it before each request and never store the key: it may change. */
  apiKey(): Promise<string | undefined>
}
/**
 * Failures are thrown as classified `UpstreamFailure`s; an abort rejects with the signal's reason. A client does not
 * retry, does not read the environment, and knows neither prices nor sessions.
 */
export interface ProviderClient extends MediaClient {
  complete(request: CompletionRequest, signal: AbortSignal): AsyncIterable<CompletionEvent>
  /** The ids of the models on offer, for vendors that list them. */
  models?(signal: AbortSignal): Promise<readonly string[]>
  /** One vector for each text, in the order of the texts. Fails like `complete`. */
  embed?(request: EmbeddingRequest, signal: AbortSignal): Promise<Embeddings>
  /** A cheap call that proves the address and the key. */
  probe(signal: AbortSignal): Promise<{ readonly model: string }>
}

/** The default model, and the limits of one request: the number of texts and their characters together. */
export interface Embedding {
  readonly model: string
  readonly texts: number
  readonly chars: number
}
/** `purpose`: some models embed queries and documents differently; `document` when absent. */
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
 * A client whose code is loaded on first use, so that unused drivers do not slow down the start. What the loaded client
 * is capable of has to be declared, because it is not loaded yet.
 */
export function lazyClient(
  load: () => Promise<ProviderClient>,
  capabilities: { readonly models?: boolean; readonly embed?: boolean; readonly media?: readonly MediaKind[] } = {},
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
      // Not a generator: every event would pass through it.
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
    ...(capabilities.models && {
      models: async (signal: AbortSignal) => (await (await open()).models?.(signal)) ?? [],
    }),
    ...(capabilities.embed && {
      async embed(request: EmbeddingRequest, signal: AbortSignal) {
        const client = await open()
        if (!client.embed) throw new Error('the client cannot embed')
        return client.embed(request, signal)
      },
    }),
    ...(capabilities.media && lazyMedia(open, capabilities.media)),
  }
}

export interface ProviderRegistry {
  /** The disposer stops new calls. Running calls finish with the code they started with. */
  add(driver: ProviderDriver): () => Promise<void>
}
export const Providers = defineService<ProviderRegistry>()('providers', {
  remote: () => import('./remote.ts'),
})

/** Turns one driver into a plugin. */
export function defineProvider<C extends ConfigSchema>(version: string, driver: ProviderDriver<C>) {
  return defineProviders(`provider-${driver.name}`, version, [driver], driver.apiVersion)
}
/** What drivers may use beside the network. Programs they start end with the plugin at the latest. */
export interface DriverDeps {
  readonly spawn: Spawn
}
/** Turns drivers that share a format into one plugin. */
export function defineProviders(
  name: string,
  version: string,
  drivers: readonly ProviderDriver[] | ((deps: DriverDeps) => readonly ProviderDriver[]),
  apiVersion?: string,
) {
  return definePlugin({
    name,
    version,
    ...omitUndefined({ apiVersion }),
    config: v.object({}),
    requires: { providers: Providers },
    setup(ctx) {
      for (const driver of typeof drivers === 'function' ? drivers({ spawn: ctx.spawn }) : drivers)
        ctx.own(`provider ${driver.name}`, ctx.services.providers.add(driver))
      return {}
    },
  })
}
