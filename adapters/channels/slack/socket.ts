import * as v from 'valibot'
import { EventConnection, JsonSocket, keepAlive } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import { Envelope } from './wire.ts'

export interface SocketModeDeps {
  readonly link: ChannelLink<unknown>
  /** The address of another socket; each can be used once. */
  findUrl(): Promise<string>
  /** Deals with what an envelope contains. Settles when it is durable. */
  deliver(envelope: Envelope): Promise<void>
}

const HELLO_MS = 15_000
const PING_MS = 20_000
const NORMAL = 1000

/**
 * Receives over Socket Mode. Before Slack ends a connection it says so: the next one is opened first, so that nothing is
 * missed between them.
 */
export class SocketMode {
  readonly closed: Promise<ConnectionEnd>
  readonly #deps: SocketModeDeps
  readonly #closed = Promise.withResolvers<ConnectionEnd>()
  readonly #connections = new Set<EventConnection>()
  #current: EventConnection | undefined
  #isReplacing = false
  /** How the old connection ended while the next one was being opened. */
  #lost: ConnectionEnd | undefined

  constructor(deps: SocketModeDeps) {
    this.#deps = deps
    this.closed = this.#closed.promise
  }

  /** Settles when the first connection receives. Throws `UpstreamFailure`. */
  async open(): Promise<void> {
    await this.#connect()
  }

  async close(): Promise<void> {
    this.#closed.resolve({ retry: 'later', reason: 'the connection ended' })
    await Promise.all([...this.#connections].map((connection) => connection.close()))
  }

  async #connect(): Promise<void> {
    const { link, findUrl } = this.#deps
    const raw = await link.webSocket(await findUrl(), { signal: link.signal })
    const connection = new EventConnection({ system: 'slack', link, closeCode: NORMAL, handshakeMs: HELLO_MS })
    const socket = new JsonSocket(link, raw, (frame) => this.#read(frame, connection))
    const opened = connection.open(socket)
    this.#connections.add(connection)
    void connection.closed.then(() => this.#connections.delete(connection))
    await opened
    this.#current = connection
    void connection.closed.then((end) => this.#onEnd(connection, end))
    void keepAlive(link, socket, PING_MS, connection.signal)
  }

  #read(raw: unknown, connection: EventConnection): FrameWork | undefined {
    const envelope = v.parse(Envelope, raw)
    if (envelope.type === 'hello') connection.setReady()
    else if (envelope.type === 'disconnect') this.#disconnect(connection, envelope.reason ?? '')
    else if (envelope.envelope_id != null) return () => this.#accept(connection, envelope)
    return undefined
  }

  /**
   * Slack sends an envelope again that is not acknowledged within three seconds. Storing a message takes a few
   * milliseconds, so it is durable before it is acknowledged, and what comes twice is dropped as a duplicate.
   */
  async #accept(connection: EventConnection, envelope: Envelope): Promise<void> {
    await this.#deps.deliver(envelope)
    await connection.send({ envelope_id: envelope.envelope_id })
  }

  #disconnect(connection: EventConnection, reason: string): void {
    if (reason === 'link_disabled')
      connection.endWith({ retry: 'never', reason: 'Socket Mode is switched off in the settings of the Slack app' })
    // Slack warns some seconds before it closes: until the next connection is greeted, this one goes on.
    else if (connection === this.#current && !this.#isReplacing) void this.#replace(connection)
  }

  async #replace(old: EventConnection): Promise<void> {
    this.#isReplacing = true
    this.#lost = undefined
    try {
      await this.#connect()
      await old.close()
    } catch (error) {
      // The old one may still be open. Its end is the end of all.
      this.#deps.link.log.warn('The next socket of Slack could not be opened', { error })
      if (this.#lost) this.#closed.resolve(this.#lost)
    } finally {
      this.#isReplacing = false
    }
  }

  #onEnd(connection: EventConnection, end: ConnectionEnd): void {
    if (connection !== this.#current) return
    if (this.#isReplacing) this.#lost = end
    else this.#closed.resolve(end)
  }
}
