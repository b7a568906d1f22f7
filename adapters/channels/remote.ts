import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { RemoteEnd, RemoteMethods, RemoteService, RemoteServiceDeps } from 'svc/sdk'
import { exposeAdapter } from './remote-adapter.ts'
import type {
  ChannelAdapter,
  ChannelConnection,
  ChannelLink,
  ChannelRegistry,
  ChannelState,
  ConnectionEnd,
  QrStep,
  WebhookRequest,
} from './channel.ts'
import type { InboundMessage, OutboundMessage } from './message.ts'

type Config = Record<string, unknown>
const Declaration = v.object({
  name: v.string(),
  title: v.string(),
  category: v.picklist(['messaging', 'enterprise', 'social', 'developer', 'notification']),
  description: v.string(),
  hosts: v.optional(v.array(v.string())),
  hasSetup: v.boolean(),
})
const Setup = v.object({
  icon: v.optional(v.pipe(v.string(), v.maxLength(8))),
  difficulty: v.picklist(['easy', 'medium', 'hard']),
  minutes: v.number(),
  steps: v.pipe(v.array(v.pipe(v.string(), v.maxLength(1000))), v.maxLength(50)),
})
const Bucket = v.object({ perSecond: v.number(), burst: v.number() })
const Capabilities = v.looseObject({
  dialect: v.string(),
  maxLength: v.number(),
  lengthUnit: v.picklist(['utf16', 'characters', 'graphemes', 'bytes']),
  idempotentSend: v.boolean(),
  rate: v.object({ perChat: v.optional(Bucket), overall: Bucket }),
})
const Loaded = v.object({
  object: v.number(),
  config: v.unknown(),
  capabilities: Capabilities,
  silenceMs: v.optional(v.number()),
  members: v.array(v.string()),
})
const Opened = v.object({ object: v.number(), members: v.array(v.string()) })
const Sent = v.object({ id: v.string(), wasSentBefore: v.optional(v.boolean()) })
const Warnings = v.pipe(v.array(v.pipe(v.string(), v.maxLength(1000))), v.maxLength(100))
const Ended = v.object({
  retry: v.picklist(['later', 'never']),
  reason: v.string(),
  retryAfterSecs: v.optional(v.number()),
})
const Answered = v.object({
  status: v.number(),
  headers: v.optional(v.record(v.string(), v.string())),
  body: v.optional(v.string()),
})
/** Of an inbound message; the channel host checks and limits what is in it. */
const Inbound = v.looseObject({
  id: v.string(),
  chat: v.looseObject({ id: v.string(), kind: v.picklist(['direct', 'group']) }),
  sender: v.looseObject({ id: v.string(), name: v.string() }),
  text: v.string(),
  attachments: v.array(v.looseObject({})),
  mentionsBot: v.boolean(),
  sentAt: v.string(),
})

/** How channels cross to a plugin in a process of its own. */
const remoteChannels: RemoteService<ChannelRegistry> = {
  client: (remote, register) => ({
    add(channel) {
      const declaration = { ...channel, hasSetup: channel.setup !== undefined }
      register('add', v.parse(Declaration, declaration), exposeAdapter(remote, channel))
      // The process ends with the plugin.
      return async () => undefined
    },
  }),
  serve: (registry, deps) => ({
    async add([found, object]) {
      const { hasSetup, ...declaration } = v.parse(Declaration, found)
      const source = v.parse(v.number(), object)
      // A member that does not cross is refused now, and not when the first account is configured.
      const adapter = await loadAdapter(deps, source)
      const setup = hasSetup
        ? async () => ({ default: omitUndefined(v.parse(Setup, await deps.remote.call(source, 'setup', []))) })
        : undefined
      const load = async (): Promise<{ readonly default: ChannelAdapter }> => ({ default: adapter })
      deps.own(
        `channel ${declaration.name}`,
        registry.add({ ...omitUndefined({ ...declaration, setup }), load } as never, deps.network),
      )
    },
  }),
}

async function loadAdapter({ remote }: RemoteServiceDeps, source: number): Promise<ChannelAdapter> {
  const { object, config, capabilities, silenceMs, members } = v.parse(Loaded, await remote.call(source, 'load', []))
  const adapter: ChannelAdapter = {
    config: remote.readSchema(config) as ChannelAdapter['config'],
    capabilities: capabilities as unknown as ChannelAdapter['capabilities'],
    ...omitUndefined({ silenceMs }),
    async open(link) {
      const exposed = exposeLink(remote, link, object)
      try {
        return new RemoteConnection(
          remote,
          v.parse(Opened, await remote.call(object, 'open', [exposed.facts], link.signal)),
          exposed.release,
        )
      } catch (error) {
        exposed.release()
        throw error
      }
    },
    async probe(link) {
      const exposed = exposeLink(remote, link, object)
      try {
        const found = await remote.call(object, 'probe', [exposed.facts], link.signal)
        return v.parse(v.object({ account: v.string() }), found)
      } finally {
        exposed.release()
      }
    },
  }
  if (!members.includes('signIn')) return adapter
  return { ...adapter, signIn: (link) => signIn(remote, object, link) }
}

async function* signIn(remote: RemoteEnd, object: number, link: ChannelLink<Config>): AsyncGenerator<QrStep> {
  const exposed = exposeLink(remote, link, object)
  try {
    for await (const step of remote.stream(object, 'signIn', [exposed.facts], link.signal)) yield step as QrStep
  } finally {
    exposed.release()
  }
}

/** What the adapter in the other process may use of the host, until it is released. */
function exposeLink(
  remote: RemoteEnd,
  link: ChannelLink<Config>,
  adapter: number,
): { readonly facts: object; readonly release: () => void } {
  const methods: RemoteMethods = {
    receive: ([message]) => link.receive(v.parse(Inbound, message) as unknown as InboundMessage),
    heard: () => link.heard(),
    log: ([level, ...parts]) =>
      link.log[v.parse(v.picklist(['error', 'warn', 'info', 'debug']), level)](parts[0], ...parts.slice(1)),
    ...stateMethods('state', link.state),
    ...stateMethods('secrets', link.secrets),
  }
  const object = remote.expose(methods)
  const network = remote.exposeNetwork({ ...link, admit: async () => undefined })
  const abort = (): void => {
    remote.call(adapter, 'abort', [object]).catch(() => undefined /* its process has ended */)
  }
  link.signal.addEventListener('abort', abort, { once: true })
  return {
    facts: { accountId: link.accountId, config: link.config, link: object, network },
    release() {
      link.signal.removeEventListener('abort', abort)
      abort()
      remote.release(object)
      remote.release(network)
    },
  }
}
function stateMethods(name: string, state: ChannelState): RemoteMethods {
  const Text = v.pipe(v.string(), v.maxLength(1_000_000))
  return {
    [`${name}.read`]: ([key]) => state.read(v.parse(Text, key)),
    [`${name}.write`]: ([key, value]) => state.write(v.parse(Text, key), v.parse(Text, value)),
  }
}

/** In the daemon: a connection that is open in the other process. */
class RemoteConnection implements ChannelConnection {
  readonly closed: Promise<ConnectionEnd>
  readonly edit?: NonNullable<ChannelConnection['edit']>
  readonly readAttachment?: NonNullable<ChannelConnection['readAttachment']>
  readonly delete?: NonNullable<ChannelConnection['delete']>
  readonly warnings?: NonNullable<ChannelConnection['warnings']>
  readonly typing?: NonNullable<ChannelConnection['typing']>
  readonly react?: NonNullable<ChannelConnection['react']>
  readonly webhook?: NonNullable<ChannelConnection['webhook']>
  readonly #remote: RemoteEnd
  readonly #object: number
  readonly #release: () => void

  constructor(remote: RemoteEnd, { object, members }: v.InferOutput<typeof Opened>, release: () => void) {
    this.#remote = remote
    this.#object = object
    this.#release = release
    const call = (method: string, ...args: readonly unknown[]): Promise<unknown> => remote.call(object, method, args)
    this.closed = call('closed').then(
      (end) => omitUndefined(v.parse(Ended, end)) as ConnectionEnd,
      (error: unknown) => ({ retry: 'later', reason: error instanceof Error ? error.message : String(error) }),
    )
    const has = (member: string): boolean => members.includes(member)
    if (has('edit')) this.edit = async (sent, message) => void (await this.#deliver('edit', message, sent))
    if (has('delete')) this.delete = async (sent, to) => void (await call('delete', sent, to))
    if (has('warnings')) this.warnings = warningsOf(() => call('warnings'))
    if (has('typing')) this.typing = async (to) => void (await call('typing', to))
    if (has('react')) this.react = async (to, id, emoji) => void (await call('react', to, id, emoji))
    if (has('webhook')) this.webhook = (request) => this.#webhook(request)
    if (has('readAttachment'))
      this.readAttachment = async (reference, signal) =>
        bytesOf(remote.stream(object, 'readAttachment', [reference], signal))
  }

  async send(message: OutboundMessage) {
    return omitUndefined(v.parse(Sent, await this.#deliver('send', message)))
  }
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#remote.call(this.#object, 'dispose', [])
    } finally {
      this.#release()
    }
  }

  /** The contents of attachments are read by the adapter when it needs them. */
  async #deliver(method: string, message: OutboundMessage, ...rest: readonly unknown[]): Promise<unknown> {
    const contents = this.#remote.expose(
      Object.fromEntries(message.attachments.map(({ bytes }, index) => [String(index), () => bytes()])),
    )
    try {
      return await this.#remote.call(this.#object, method, [message, contents, ...rest])
    } finally {
      this.#remote.release(contents)
    }
  }

  /** All headers cross, because the signature may be in any of them. Node limits their size. */
  async #webhook({ method, query, headers, body }: WebhookRequest) {
    const request = { method, query: query.toString(), headers: headers(), body }
    const answer = await this.#remote.call(this.#object, 'webhook', [request])
    return omitUndefined(v.parse(Answered, answer)) as never
  }
}

/** The status does not wait for the process: it shows what was said last, and asks for the next time. */
function warningsOf(ask: () => Promise<unknown>): () => readonly string[] {
  let known: readonly string[] = []
  const renew = (): void => {
    ask().then(
      (found) => {
        known = v.is(Warnings, found) ? found : []
      },
      () => undefined /* its process has ended, which the status says */,
    )
  }
  renew()
  return () => {
    renew()
    return known
  }
}

async function* bytesOf(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const piece of stream) yield v.parse(v.instance(Uint8Array), piece)
}

export default remoteChannels
