import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, JsonSocket, keepAlive, within } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork, SocketEnd } from 'svc/channels'
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
 * Receives over Socket Mode. Before Slack ends a socket it says so: the next one is opened first, so that nothing is
 * missed between them.
 */
export class SocketMode {
  readonly closed: Promise<ConnectionEnd>
  readonly #deps: SocketModeDeps
  readonly #closed = Promise.withResolvers<ConnectionEnd>()
  readonly #controller = new AbortController()
  readonly #sockets = new Set<JsonSocket>()
  #current: JsonSocket | undefined
  #isReplacing = false
  /** How the old socket ended while the next one was being opened. */
  #lost: ConnectionEnd | undefined

  constructor(deps: SocketModeDeps) {
    this.#deps = deps
    this.closed = this.#closed.promise
  }

  /** Settles when the first socket receives. Throws `UpstreamFailure`. */
  async open(): Promise<void> {
    try {
      await this.#connect()
    } catch (error) {
      await this.close()
      throw error
    }
    void keepAlive(this.#deps.link, { ping: () => this.#current?.ping() }, PING_MS, this.#controller.signal)
  }

  async close(): Promise<void> {
    this.#controller.abort()
    await Promise.all([...this.#sockets].map((socket) => socket.close(NORMAL)))
    this.#closed.resolve({ retry: 'later', reason: 'the connection ended' })
  }

  async #connect(): Promise<void> {
    const { link, findUrl } = this.#deps
    const hello = Promise.withResolvers<void>()
    const raw = await link.webSocket(await findUrl(), { signal: link.signal })
    const socket: JsonSocket = new JsonSocket(link, raw, (frame) => this.#read(frame, socket, hello.resolve))
    this.#sockets.add(socket)
    const lost = socket.ended.then((end) => {
      throw failure(this.#onEnd(socket, end).reason)
    })
    // Once Slack has greeted, the end of the socket is dealt with in `#onEnd`.
    lost.catch(() => undefined)
    try {
      await within(HELLO_MS, 'slack', Promise.race([hello.promise, lost]))
    } catch (error) {
      await socket.close(NORMAL)
      throw error
    }
    this.#current = socket
  }

  #read(raw: unknown, socket: JsonSocket, onHello: () => void): FrameWork | undefined {
    const envelope = v.parse(Envelope, raw)
    if (envelope.type === 'hello') onHello()
    else if (envelope.type === 'disconnect') this.#disconnect(socket, envelope.reason ?? '')
    else if (envelope.envelope_id != null) return () => this.#accept(socket, envelope)
    return undefined
  }

  /**
   * Slack sends an envelope again that is not acknowledged within three seconds. Storing a message takes a few
   * milliseconds, so it is durable before it is acknowledged, and what comes twice is dropped as a duplicate.
   */
  async #accept(socket: JsonSocket, envelope: Envelope): Promise<void> {
    await this.#deps.deliver(envelope)
    await socket.send({ envelope_id: envelope.envelope_id })
  }

  #disconnect(socket: JsonSocket, reason: string): void {
    if (reason === 'link_disabled') {
      this.#closed.resolve({ retry: 'never', reason: 'Socket Mode is switched off in the settings of the Slack app' })
      void socket.close(NORMAL)
      return
    }
    // Slack warns some seconds before it closes: until the next socket greets, this one goes on.
    if (socket === this.#current && !this.#isReplacing) void this.#replace(socket)
  }

  async #replace(old: JsonSocket): Promise<void> {
    this.#isReplacing = true
    this.#lost = undefined
    try {
      await this.#connect()
      await old.close(NORMAL)
    } catch (error) {
      // The old socket may still be open. Its end is the end of the connection.
      this.#deps.link.log.warn('The next socket of Slack could not be opened', { error })
      if (this.#lost) this.#finish(this.#lost)
    } finally {
      this.#isReplacing = false
    }
  }

  #onEnd(socket: JsonSocket, end: SocketEnd): ConnectionEnd {
    this.#sockets.delete(socket)
    const told: ConnectionEnd =
      end.failure === undefined
        ? { retry: 'later', reason: `slack closed the connection with ${end.code}` }
        : endOf(end.failure)
    if (socket !== this.#current) return told
    if (this.#isReplacing) this.#lost = told
    else this.#finish(told)
    return told
  }

  #finish(end: ConnectionEnd): void {
    this.#controller.abort()
    this.#closed.resolve(end)
    for (const socket of this.#sockets) void socket.close(NORMAL)
  }
}

function failure(message: string): UpstreamFailure {
  return new UpstreamFailure('slack', message, { reason: 'network', retry: 'later' })
}
