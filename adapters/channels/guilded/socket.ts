import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, JsonSocket, keepAlive, SavedPosition, within } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { GuildedConfig } from './config.ts'
import type { GuildedEvents } from './events.ts'
import { Frame, Welcome } from './wire.ts'

const Op = { event: 0, welcome: 1, resumed: 2, invalidCursor: 8, internalError: 9 } as const
const HANDSHAKE_MS = 20_000

/** One connection to the events of the server, from its welcome to its end. */
export class GuildedSocket {
  readonly #link: ChannelLink<GuildedConfig>
  readonly #events: GuildedEvents
  readonly #position: SavedPosition
  readonly #controller = new AbortController()
  readonly #ready = Promise.withResolvers<void>()
  #socket: JsonSocket | undefined
  #closed: Promise<ConnectionEnd> | undefined
  #cursor: string | undefined
  #ownEnd: ConnectionEnd | undefined

  constructor(link: ChannelLink<GuildedConfig>, events: GuildedEvents) {
    this.#link = link
    this.#events = events
    this.#position = new SavedPosition(link, 'last_event')
  }

  /** Settles when events arrive and those that were missed are durable. Throws `UpstreamFailure`. */
  async open(url: string): Promise<void> {
    const { signal, config } = this.#link
    this.#cursor = await this.#position.read()
    const headers = {
      authorization: `Bearer ${config.token}`,
      ...(this.#cursor !== undefined && { 'guilded-last-message-id': this.#cursor }),
    }
    const raw = await this.#link.webSocket(url, { headers, signal })
    const socket = new JsonSocket(this.#link, raw, (frame) => this.#read(v.parse(Frame, frame)))
    this.#socket = socket
    this.#closed = this.#watch(socket)
    const lost = this.#closed.then(({ reason, retry, retryAfterSecs }) => {
      throw new UpstreamFailure('guilded', reason, { reason: 'network', retry, retryAfterSecs: retryAfterSecs ?? 0 })
    })
    // Once the server is ready, its end is told by `closed`.
    lost.catch(() => undefined)
    try {
      await within(HANDSHAKE_MS, 'guilded', Promise.race([this.#ready.promise, lost]))
    } catch (error) {
      await this.close()
      signal.throwIfAborted()
      throw error
    }
  }

  get closed(): Promise<ConnectionEnd> {
    if (!this.#closed) throw new Error('The socket was not opened')
    return this.#closed
  }

  async close(): Promise<void> {
    await this.#socket?.close()
    await this.#closed
  }

  async #watch(socket: JsonSocket): Promise<ConnectionEnd> {
    const { failure, code } = await socket.ended
    this.#controller.abort()
    try {
      await this.#position.flush()
    } catch (error) {
      // An older position holds: what came after it is delivered again.
      this.#link.log.warn('The position in the events of Guilded could not be saved', { error })
    }
    if (this.#ownEnd) return this.#ownEnd
    return failure === undefined
      ? { retry: 'later', reason: `guilded closed the connection with ${code}` }
      : endOf(failure)
  }

  #read({ op, t: type, s: id, d: data }: Frame): FrameWork | undefined {
    switch (op) {
      case Op.welcome:
        return this.#greet(v.parse(Welcome, data))
      case Op.resumed:
        return async () => this.#ready.resolve()
      case Op.event:
        return async () => {
          await this.#events.dispatch(type ?? undefined, data)
          if (id != null && id !== '') this.#position.set(id)
        }
      case Op.invalidCursor:
        return async () => {
          // What came since then is lost: the next connection begins with what comes.
          this.#link.log.warn('Guilded no longer has the events since the last connection')
          await this.#position.clear()
          this.#endWith({ retry: 'later', reason: 'guilded does not know the last event', retryAfterSecs: 0 })
        }
      case Op.internalError:
        return async () => this.#endWith({ retry: 'later', reason: 'guilded reports an error of its own' })
      default:
        return undefined
    }
  }

  /** Events that were missed follow, if there were any before; the first time there is nothing to read. */
  #greet({ heartbeatIntervalMs, lastMessageId }: v.InferOutput<typeof Welcome>): FrameWork {
    if (this.#socket) void keepAlive(this.#link, this.#socket, heartbeatIntervalMs, this.#controller.signal)
    return async () => {
      if (this.#cursor !== undefined) return
      if (lastMessageId) await this.#position.write(lastMessageId)
      this.#ready.resolve()
    }
  }

  #endWith(end: ConnectionEnd): void {
    this.#ownEnd ??= end
    void this.#socket?.close()
  }
}
