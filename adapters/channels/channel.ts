import * as v from 'valibot'
import { definePlugin, defineService, omitUndefined } from 'svc/sdk'
import type { Child, ConfigSchema, Connect, Fetch, Logger, OpenWebSocket, PluginNetwork, StartTls } from 'svc/sdk'
import type { Destination, InboundMessage, JsonObject, OutboundMessage, SentMessage } from './message.ts'

/** The markup of the texts a platform takes. The channel host renders Markdown into it. */
export type Dialect =
  | 'plain'
  | 'markdown'
  | 'discord'
  | 'telegram-html'
  | 'matrix-html'
  | 'slack'
  | 'whatsapp'
  | 'xmpp'
  | 'irc'
  | 'email-html'

/** What a platform can do. What is missing, the channel host leaves out or replaces visibly. */
export interface ChannelCapabilities {
  readonly dialect: Dialect
  readonly maxLength: number
  /** The unit of `maxLength`, after rendering. */
  readonly lengthUnit: 'utf16' | 'characters' | 'graphemes' | 'bytes'
  /** Messages are edited in place: answers are shown while they are written. */
  readonly edit?: { readonly minIntervalMs: number }
  /** The typing indicator, and after how many milliseconds it has to be repeated. */
  readonly typing?: { readonly repeatMs: number }
  readonly threads?: boolean
  readonly replies?: boolean
  readonly reactions?: boolean
  readonly buttons?: boolean
  readonly attachments?: { readonly inbound: boolean; readonly outbound: boolean; readonly maxBytes: number }
  /** A message that is sent again under the same id appears once. */
  readonly idempotentSend: boolean
  /** Everybody can read what is posted: errors, notices and approvals are never sent there. */
  readonly isPublic?: boolean
  /** Token buckets of the platform for sending: messages per second and how many at once. */
  readonly rate: {
    readonly perChat?: { readonly perSecond: number; readonly burst: number }
    readonly overall: { readonly perSecond: number; readonly burst: number }
  }
}

/** Durable values of one account: positions in a feed, ids of a session. */
export interface ChannelState {
  read(key: string): Promise<string | undefined>
  /** Durable when it settles. */
  write(key: string, value: string): Promise<void>
}

/** A program that an adapter works through. Its arguments are passed one by one: no shell interprets them. */
export interface ProgramRequest {
  /** A name or a path, of a field that is `fileOnly`. */
  readonly program: string
  readonly args: readonly string[]
  /** The absolute folder it starts in and has as its home, of a field that is `fileOnly`. */
  readonly folder: string
  /** All of its standard input. Secrets belong here: everybody on this machine can see arguments. */
  readonly input?: string
  /** Milliseconds until it is ended; it lasts as long as the link when absent. */
  readonly timeoutMs?: number
  /** Called with each piece of its output as it comes. */
  readonly onOutput: (bytes: Uint8Array, from: 'stdout' | 'stderr') => void
}
/** Starts a program that ends with the link. Settles when it runs. */
export type StartProgram = (request: ProgramRequest) => Promise<Pick<Child, 'ended' | 'kill'>>

/** Everything an adapter may use of the host, for one account. Deliberately not the plugin context. */
export interface ChannelLink<C> {
  /** The account of the platform, unique in the channel: `default` if there is only one. */
  readonly accountId: string
  /** The configuration, with secrets. */
  readonly config: C
  /** Aborts on disable, reload, reconnect and unload. Every wait of the adapter ends then. */
  readonly signal: AbortSignal
  /** Requests to the platform. Private addresses only if the configuration file names them. */
  readonly fetch: Fetch
  /** Sockets and WebSockets to the platform, under the same rules. They end with `signal`. */
  readonly connect: Connect
  readonly startTls: StartTls
  readonly webSocket: OpenWebSocket
  /**
   * For platforms without another way in. Throws `Refusal('forbidden')` for accounts that are not in the configuration
   * file, and for channels that are not built in.
   */
  readonly startProgram: StartProgram
  readonly state: ChannelState
  /** Secrets that the adapter obtains itself, such as refreshed tokens, encrypted at rest. */
  readonly secrets: ChannelState
  readonly log: Logger
  /** The present time in milliseconds. */
  now(): number
  /** Settles after a time; rejects when `signal` aborts. */
  sleep(ms: number): Promise<void>
  /**
   * Settles when the message is durable, or is a duplicate, or is refused by a policy of the operator: acknowledge it
   * to the platform only then. Rejects when it could not be stored: do not acknowledge it.
   */
  receive(message: InboundMessage): Promise<void>
  /**
   * The platform was heard: a frame, a pong, an answer to a poll. Nothing heard for `silenceMs` is a lost connection.
   */
  heard(): void
}

/** Why a connection ended. */
export interface ConnectionEnd {
  /** Whether another `open` may help. `never`: the configuration has to change first. */
  readonly retry: 'later' | 'never'
  /** For the status and the log, without secrets. */
  readonly reason: string
  /** Earliest time of the next attempt, in seconds. */
  readonly retryAfterSecs?: number
}

/** A request of the platform to `POST|GET /api/channels/<name>/webhook`. */
export interface WebhookRequest {
  readonly method: 'GET' | 'POST'
  readonly query: URLSearchParams
  /** One header by its lower-case name. */
  header(name: string): string | undefined
  /** All headers, by lower-case name. */
  headers(): Readonly<Record<string, string>>
  /** As it came, for the signature. */
  readonly body: Uint8Array
}
export interface WebhookAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** An open connection to the platform. Disposing ends it and settles when nothing of it runs. */
export interface ChannelConnection extends AsyncDisposable {
  /** Settles when the connection is lost. The host decides whether and when to open another one. Never rejects. */
  readonly closed: Promise<ConnectionEnd>
  /**
   * Sends one message, once: the host retries. Throws `UpstreamFailure`: `retry: 'never'` for what will fail again,
   * with `reason: 'auth'` for rejected credentials; `retryAfterSecs` where the platform names a pause.
   */
  send(message: OutboundMessage): Promise<SentMessage>
  /** Replaces the text of a sent message. An unchanged text is a success. */
  edit?(sent: SentMessage, message: OutboundMessage): Promise<void>
  /** Removes a sent message. One that is gone already is a success. */
  delete?(sent: SentMessage, to: Destination): Promise<void>
  /** The content of a file that a message announced. The host reads it once, with a limit of bytes. */
  readAttachment?(reference: JsonObject, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  typing?(to: Destination): Promise<void>
  react?(to: Destination, messageId: string, emoji: string): Promise<void>
  /** What the operator should know of a connection that works, such as chats that cannot be read. For the status. */
  warnings?(): readonly string[]
  /**
   * Verifies a request of the platform, passes its messages to `receive`, and answers. The host answers 401 with a
   * fixed text when it throws `Refusal('unauthorized')`.
   */
  webhook?(request: WebhookRequest): Promise<WebhookAnswer>
}

/** A step of signing in with a QR code. */
export interface QrStep {
  readonly status: 'pending' | 'scanned' | 'authenticated'
  /** The text of the QR code. */
  readonly payload?: string
  /** ISO 8601 UTC. */
  readonly expiresAt?: string
}

/** An adapter translates between a platform and the channel host, and does nothing else. */
export interface ChannelAdapter<C extends ConfigSchema = ConfigSchema> {
  /**
   * The fields of `[channels.<name>]` beside those of the host. `secret(schema)` marks secrets, which are kept in the
   * vault; `token` is the main one. Every address of the platform can be overridden; the main one is `base_url`.
   */
  readonly config: C
  readonly capabilities: ChannelCapabilities
  /** Milliseconds without a sign of the platform after which the connection counts as lost; absent for webhooks. */
  readonly silenceMs?: number
  /** How allow-lists compare people; equal ids or handles, ignoring case, when absent. */
  matchesSender?(entry: string, sender: InboundMessage['sender']): boolean
  /**
   * Settles when messages can be sent and received. Throws `UpstreamFailure` as `send` does. Must not read history as
   * new messages.
   */
  open(link: ChannelLink<v.InferOutput<C>>): Promise<ChannelConnection>
  /** Checks the credentials without sending anything visible, and tells whose they are. */
  probe(link: ChannelLink<v.InferOutput<C>>): Promise<{ readonly account: string }>
  /** Whether an account of this configuration signs in with a QR code; each does if absent and there is a `signIn`. */
  usesSignIn?(config: v.InferOutput<C>): boolean
  /** Signs in with a QR code: yields steps until `authenticated`, and stores credentials in `link.secrets`. */
  signIn?(link: ChannelLink<v.InferOutput<C>>): AsyncIterable<QrStep>
}

/** How an account is made at the platform, for people: before the form is filled in. */
export interface ChannelSetup {
  /** One or two letters for a tile; the first two of the title when absent. */
  readonly icon?: string
  readonly difficulty: 'easy' | 'medium' | 'hard'
  /** How long it takes. */
  readonly minutes: number
  /** A sentence each, in order; where each value of the form is found. */
  readonly steps: readonly string[]
}

/** What is known of a channel before its code is loaded. */
export interface ChannelDeclaration {
  /** lower_snake_case; the path segment in the API and the section `[channels.<name>]`. */
  readonly name: string
  readonly title: string
  readonly category: 'messaging' | 'enterprise' | 'social' | 'developer' | 'notification'
  readonly description: string
  /** Imports how it is set up, when somebody wants to know. */
  readonly setup?: () => Promise<{ readonly default: ChannelSetup }>
  /**
   * The hosts its adapter reaches, as in `uses.hosts`; any when absent. A channel that is not built in is held to them,
   * and whoever installs it accepts them.
   */
  readonly hosts?: readonly string[]
  /** The versions of the interface it is written for, as in `definePlugin`. */
  readonly apiVersion?: string
  /** Imports the adapter, on first use. */
  readonly load: () => Promise<{ readonly default: ChannelAdapter }>
}

/** The network of the plugin that adds a channel. `operator` is for accounts of the configuration file. */
export interface ChannelNetwork extends PluginNetwork {
  readonly operator?: PluginNetwork
  /** Counts calls of the adapter as calls of that plugin: new code whose calls fail is reverted. */
  readonly run?: <T>(work: () => Promise<T> | T) => Promise<T>
}
/** The adapters that are loaded as plugins. */
export interface ChannelRegistry {
  /**
   * Adds a channel whose connections use this network, unless it is built in. The disposer closes its connections and
   * settles when they have ended.
   */
  add(channel: ChannelDeclaration, network: ChannelNetwork): () => Promise<void>
}
/** The service that adapters register with. */
export const Channels = defineService<ChannelRegistry>()('channels', {
  remote: () => import('./remote.ts'),
})

/** Checks the types of an adapter, the default export of the module that `load` imports. */
export function defineAdapter<C extends ConfigSchema>(adapter: ChannelAdapter<C>): ChannelAdapter {
  return adapter as ChannelAdapter
}

/** Turns a channel into a plugin named `channel-<name>`. */
export function defineChannel(version: string, channel: ChannelDeclaration) {
  return definePlugin({
    name: `channel-${channel.name.replaceAll('_', '-')}`,
    version,
    ...omitUndefined({ apiVersion: channel.apiVersion }),
    config: v.object({}),
    requires: { channels: Channels },
    // Two copies would read from the platform at once.
    reload: 'exclusive',
    // The host of a platform is often a setting of the operator, so a channel that names none may reach any.
    uses: { hosts: channel.hosts ?? ['*'] },
    outbound: 'both',
    setup(ctx) {
      ctx.own(`channel ${channel.name}`, ctx.services.channels.add(channel, ctx))
      return {}
    },
  })
}
