import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, EventConnection, JsonSocket } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { TwitchConfig } from './config.ts'
import { Frame, Reconnect, Revocation, Welcome } from './wire.ts'

export interface EventSocketDeps {
  readonly link: ChannelLink<TwitchConfig>
  /** Has events sent to a session. Settles within the ten seconds that Twitch allows. */
  subscribe(sessionId: string): Promise<void>
  /** Deals with an event. Settles when it is durable. */
  receive(frame: Frame): Promise<void>
  /** Twitch sends no more events of a channel, and why. */
  revoked(reason: string, broadcasterId: string | undefined): void
}

const WELCOME_MS = 15_000
const NORMAL = 1000
/** Twitch sends a sign of life when nothing happened for so long. */
export const KEEPALIVE_SECS = 30

/**
 * Receives over EventSub. Twitch says when a socket has to be replaced: the next one is opened first, so that nothing is
 * missed between them. It closes sockets on which a client sends anything, so there are no pings of ours.
 */
export class EventSocket {
  readonly closed: Promise<ConnectionEnd>
  readonly #deps: EventSocketDeps
  readonly #closed = Promise.withResolvers<ConnectionEnd>()
  readonly #connections = new Set<EventConnection>()
  #current: EventConnection | undefined
  #isReplacing = false

  constructor(deps: EventSocketDeps) {
    this.#deps = deps
    this.closed = this.#closed.promise
  }

  /** Settles when events arrive. Throws `UpstreamFailure`. */
  async open(): Promise<void> {
    const url = new URL(this.#deps.link.config.socket_url)
    url.searchParams.set('keepalive_timeout_seconds', String(KEEPALIVE_SECS))
    try {
      await this.#deps.subscribe(await this.#connect(url.href))
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async close(): Promise<void> {
    this.end({ retry: 'later', reason: 'the connection ended' })
    await Promise.all([...this.#connections].map((connection) => connection.close()))
  }

  end(end: ConnectionEnd): void {
    this.#closed.resolve(end)
  }

  /** Returns the id of the session. */
  async #connect(url: string): Promise<string> {
    const { link } = this.#deps
    const raw = await link.webSocket(url, { signal: link.signal })
    const connection = new EventConnection({ system: 'twitch', link, closeCode: NORMAL, handshakeMs: WELCOME_MS })
    let session = ''
    const welcome = (id: string): void => {
      session = id
      connection.setReady()
    }
    const opened = connection.open(new JsonSocket(link, raw, (frame) => this.#read(frame, welcome)))
    this.#connections.add(connection)
    void connection.closed.then(() => this.#connections.delete(connection))
    await opened
    this.#current = connection
    this.#isReplacing = false
    void connection.closed.then((end) => this.#onEnd(connection, end))
    return session
  }

  /** One that is being replaced may end at any time. */
  #onEnd(connection: EventConnection, end: ConnectionEnd): void {
    if (connection === this.#current && !this.#isReplacing) this.end(end)
  }

  #read(raw: unknown, welcome: (sessionId: string) => void): FrameWork | undefined {
    const frame = v.parse(Frame, raw)
    switch (frame.metadata.message_type) {
      case 'session_welcome':
        welcome(v.parse(Welcome, frame.payload).session.id)
        return undefined
      case 'session_reconnect':
        void this.#replace(v.parse(Reconnect, frame.payload).session.reconnect_url)
        return undefined
      case 'revocation':
        this.#revoke(frame.payload)
        return undefined
      case 'notification':
        return () => this.#receive(frame)
      default:
        return undefined
    }
  }

  /** Twitch sends an event once: that it was not stored is told, also of a connection that is being replaced. */
  async #receive(frame: Frame): Promise<void> {
    try {
      await this.#deps.receive(frame)
    } catch (error) {
      this.end(endOf(error))
      throw error
    }
  }

  async #replace(url: string): Promise<void> {
    if (this.#isReplacing) return
    this.#isReplacing = true
    const old = this.#current
    try {
      this.#checkHost(url)
      await this.#connect(url)
      await old?.close()
    } catch (error) {
      this.end(endOf(error))
    }
  }

  /** The address comes over the old socket. It leads to the same host, or to one of its parts. */
  #checkHost(url: string): void {
    const own = new URL(this.#deps.link.config.socket_url)
    const next = URL.canParse(url) ? new URL(url) : undefined
    const isOwn = next?.host === own.host || next?.hostname.endsWith(`.${own.hostname}`)
    if (next?.protocol !== own.protocol || !isOwn)
      throw new UpstreamFailure('twitch', 'twitch named an address of another host for the next connection', {
        reason: 'malformed',
        retry: 'later',
      })
  }

  #revoke(payload: unknown): void {
    const { status, condition } = v.parse(Revocation, payload).subscription
    if (status === 'authorization_revoked')
      return this.end({ retry: 'never', reason: 'twitch says that the token was revoked: get another one' })
    this.#deps.revoked(status, condition?.broadcaster_user_id)
  }
}
