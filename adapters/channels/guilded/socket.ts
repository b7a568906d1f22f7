import * as v from 'valibot'
import { EventConnection, JsonSocket, keepAlive, SavedPosition } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { GuildedConfig } from './config.ts'
import type { GuildedEvents } from './events.ts'
import { Frame, Welcome } from './wire.ts'

const Op = { event: 0, welcome: 1, resumed: 2, invalidCursor: 8, internalError: 9 } as const

/** One connection to the events of the server, from its welcome to its end. */
export class GuildedSocket {
  readonly #link: ChannelLink<GuildedConfig>
  readonly #events: GuildedEvents
  readonly #position: SavedPosition
  readonly #connection: EventConnection
  #socket: JsonSocket | undefined
  #cursor: string | undefined

  constructor(link: ChannelLink<GuildedConfig>, events: GuildedEvents) {
    this.#link = link
    this.#events = events
    this.#position = new SavedPosition(link, 'last_event')
    const flush = () => this.#position.flush()
    this.#connection = new EventConnection({ system: 'guilded', link, flush })
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
    await this.#connection.open(socket)
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  #read({ op, t: type, s: id, d: data }: Frame): FrameWork | undefined {
    switch (op) {
      case Op.welcome:
        return this.#greet(v.parse(Welcome, data))
      case Op.resumed:
        return async () => this.#connection.setReady()
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
          this.#connection.endWith({
            retry: 'later',
            reason: 'guilded does not know the last event',
            retryAfterSecs: 0,
          })
        }
      case Op.internalError:
        return async () => this.#connection.endWith({ retry: 'later', reason: 'guilded reports an error of its own' })
      default:
        return undefined
    }
  }

  /** Events that were missed follow, if there were any before; the first time there is nothing to read. */
  #greet({ heartbeatIntervalMs, lastMessageId }: v.InferOutput<typeof Welcome>): FrameWork {
    if (this.#socket) void keepAlive(this.#link, this.#socket, heartbeatIntervalMs, this.#connection.signal)
    return async () => {
      if (this.#cursor !== undefined) return
      if (lastMessageId) await this.#position.write(lastMessageId)
      this.#connection.setReady()
    }
  }
}
