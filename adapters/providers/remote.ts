import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { RemoteEnd, RemoteService, RemoteServiceDeps } from 'svc/sdk'
import type { CompletionEvent } from './completion.ts'
import type {
  Embeddings,
  EmbeddingRequest,
  ProviderClient,
  ProviderDriver,
  ProviderLink,
  ProviderRegistry,
} from './driver.ts'
import type { MediaClient } from './media.ts'
import { exposeMedia, RemoteOffer, remoteMedia } from './remote-media.ts'

type Config = Record<string, unknown>
const strings = v.optional(v.array(v.string()))
const text = v.optional(v.string())
/** What is known of a driver without its code. */
const Driver = v.object({
  name: v.string(),
  title: v.string(),
  envVar: text,
  otherEnvVars: strings,
  sharedKey: v.optional(v.literal(true)),
  addressVar: text,
  baseUrl: text,
  defaultModel: v.string(),
  embedding: v.optional(v.object({ model: v.string(), texts: v.number(), chars: v.number() })),
  media: v.exactOptional(RemoteOffer),
  configVars: v.optional(v.record(v.string(), v.array(v.string()))),
})
const Added = v.tuple([Driver, v.unknown(), v.number()])
const RemoteEmbeddings = v.object({
  vectors: v.array(v.array(v.number())),
  usage: v.object({ input: v.number(), estimated: v.optional(v.boolean()) }),
})
/** Questions that the daemon asks without waiting for an answer. */
const SYNCHRONOUS = ['missingRequirement', 'address', 'signIn'] as const
interface LinkFacts {
  readonly name: string
  readonly config: unknown
  readonly baseUrl: string
  readonly link: number
  readonly network: number
}

/** How providers cross to a plugin in a process of its own. */
const remoteProviders: RemoteService<ProviderRegistry> = {
  client: (remote, register) => ({
    add(driver) {
      for (const member of SYNCHRONOUS)
        if (driver[member])
          throw new Error(
            `provider "${driver.name}": ${member} is not available with isolation = "worker"; leave it out`,
          )
      register('add', v.parse(Driver, driver), remote.describeSchema(driver.config), exposeDriver(remote, driver))
      // The process ends with the plugin.
      return async () => undefined
    },
  }),
  serve: (registry, deps) => ({
    add(args) {
      const [driver, config, object] = v.parse(Added, args)
      deps.own(
        `provider ${driver.name}`,
        registry.add({
          ...omitUndefined(driver),
          config: deps.remote.readSchema(config) as ProviderDriver['config'],
          connect: (link) => new RemoteClient(deps, object, link, driver),
        }),
      )
    },
  }),
}

/** In the process of the plugin: a client for each link of the daemon. */
function exposeDriver(remote: RemoteEnd, driver: ProviderDriver): number {
  const clients = new Map<number, ProviderClient>()
  const clientOf = (found: unknown): ProviderClient => {
    const { link, network, config, ...facts } = found as LinkFacts
    const known = clients.get(link)
    if (known) return known
    const client = driver.connect({
      ...facts,
      config: v.parse(driver.config, config),
      fetch: remote.network(network).fetch,
      apiKey: async () => (await remote.call(link, 'apiKey', [])) as string | undefined,
    })
    clients.set(link, client)
    return client
  }
  return remote.expose({
    complete: ([facts, request], signal) => clientOf(facts).complete(request as never, signal),
    models: async ([facts], signal) => (await clientOf(facts).models?.(signal)) ?? [],
    probe: async ([facts], signal) => await clientOf(facts).probe(signal),
    async embed([facts, request], signal) {
      const client = clientOf(facts)
      if (!client.embed) throw new Error(`provider "${driver.name}" has limits for embeddings and no embed`)
      const { vectors, usage } = await client.embed(request as EmbeddingRequest, signal)
      return { vectors: vectors.map((vector) => [...vector]), usage }
    },
    ...exposeMedia(clientOf),
  })
}

/** In the daemon: a client whose calls cross. */
class RemoteClient implements ProviderClient {
  readonly #remote: RemoteEnd
  readonly #object: number
  readonly #facts: LinkFacts
  readonly embed?: (request: EmbeddingRequest, signal: AbortSignal) => Promise<Embeddings>
  declare readonly createImages?: NonNullable<MediaClient['createImages']>
  declare readonly speak?: NonNullable<MediaClient['speak']>
  declare readonly transcribe?: NonNullable<MediaClient['transcribe']>

  constructor(
    { remote }: RemoteServiceDeps,
    object: number,
    link: ProviderLink<Config>,
    { embedding, media }: v.InferOutput<typeof Driver>,
  ) {
    this.#remote = remote
    this.#object = object
    const refuse = async (): Promise<never> => {
      throw new Error('a provider sends requests only')
    }
    this.#facts = {
      name: link.name,
      config: link.config,
      baseUrl: link.baseUrl,
      link: remote.expose({ apiKey: () => link.apiKey() }),
      network: remote.exposeNetwork({
        fetch: link.fetch,
        admit: refuse,
        connect: refuse,
        startTls: refuse,
        webSocket: refuse,
      }),
    }
    Object.assign(this, remoteMedia(remote, { object, facts: this.#facts }, media))
    if (embedding) this.embed = (request, signal) => this.#embed(request, signal)
  }

  complete(request: Parameters<ProviderClient['complete']>[0], signal: AbortSignal): AsyncIterable<CompletionEvent> {
    // Whoever reads checks each event.
    return this.#remote.stream(
      this.#object,
      'complete',
      [this.#facts, request],
      signal,
    ) as AsyncIterable<CompletionEvent>
  }
  async models(signal: AbortSignal): Promise<readonly string[]> {
    return v.parse(v.array(v.string()), await this.#remote.call(this.#object, 'models', [this.#facts], signal))
  }
  async probe(signal: AbortSignal): Promise<{ readonly model: string }> {
    return v.parse(
      v.object({ model: v.string() }),
      await this.#remote.call(this.#object, 'probe', [this.#facts], signal),
    )
  }
  async #embed(request: EmbeddingRequest, signal: AbortSignal): Promise<Embeddings> {
    const found = await this.#remote.call(this.#object, 'embed', [this.#facts, request], signal)
    const { vectors, usage } = v.parse(RemoteEmbeddings, found)
    return {
      vectors: vectors.map((vector) => new Float32Array(vector)),
      usage: { input: usage.input, ...(usage.estimated === true && { estimated: true }) },
    }
  }
}

export default remoteProviders
