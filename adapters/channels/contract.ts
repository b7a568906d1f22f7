import * as v from 'valibot'
import { definePlugin, defineService } from 'svc/sdk'
import type { ConfigSchema, Fetch } from 'svc/sdk'

export interface InboundMessage {
  /** The platform's id of the message. Duplicates are dropped. */
  readonly id: string
  readonly from: { readonly id: string; readonly name: string }
  /** The destination of a reply: a chat, a thread, a mailbox. Only the adapter interprets it. */
  readonly thread: string
  readonly text: string
  readonly media: readonly Media[]
  /** ISO 8601 UTC. */
  readonly at: string
}
export interface OutboundMessage {
  readonly text: string
  readonly media: readonly Media[]
  readonly replyTo?: string
}
export interface Media {
  readonly kind: 'image' | 'audio' | 'file'
  readonly mime: string
  open(): Promise<ReadableStream<Uint8Array>>
}

export interface ChannelAdapter<C extends ConfigSchema = ConfigSchema> {
  readonly name: string
  readonly title: string
  readonly config: C
  /** Limits of the platform: characters of a message, its markup, and messages per second. */
  readonly limits: {
    readonly textChars: number
    readonly markup: 'plain' | 'markdown' | 'html'
    readonly perSecond: number
  }
  open(link: ChannelLink<v.InferOutput<C>>): Promise<ChannelSession>
}
/** Everything an adapter may use of the host. Deliberately not the plugin context. */
export interface ChannelLink<C> {
  readonly config: C
  /** Aborts on disable, reload and unload. */
  readonly signal: AbortSignal
  readonly fetch: Fetch
  /** The last position read from the platform; survives restarts. */
  readonly cursor: { read(): Promise<string | undefined>; write(position: string): Promise<void> }
  /** Settles when the message is durable. Acknowledge it to the platform only then. */
  receive(message: InboundMessage): Promise<void>
}
export interface ChannelSession extends AsyncDisposable {
  send(thread: string, message: OutboundMessage): Promise<{ readonly id: string }>
  /** Settles when the connection is lost. The caller of `open` decides whether to reconnect. */
  readonly closed: Promise<void>
  webhook?(request: Request): Promise<Response>
}
export interface ChannelRegistry {
  /** The disposer closes the adapter's sessions and settles when they have ended. */
  add(adapter: ChannelAdapter): () => Promise<void>
}
export const Channels = defineService<ChannelRegistry>()('channels')

/** Turns one adapter into a plugin. */
export function defineChannel<C extends ConfigSchema>(version: string, adapter: ChannelAdapter<C>) {
  return definePlugin({
    name: `channel-${adapter.name}`,
    version,
    config: v.object({}),
    requires: { channels: Channels },
    setup(ctx) {
      ctx.own(`channel ${adapter.name}`, ctx.services.channels.add(adapter))
      return {}
    },
  })
}
