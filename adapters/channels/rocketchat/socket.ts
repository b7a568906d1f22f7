import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, EventConnection, JsonSocket, keepAlive } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { RocketChatConfig } from './config.ts'
import type { RocketChatEvents } from './events.ts'
import { Frame } from './wire.ts'

const PING_MS = 30_000
const NORMAL = 1000
const MESSAGES = 'stream-room-messages'
const LOGIN = 'login'
const SUBSCRIPTION = 'messages'

/** One connection to the WebSocket of the server, which speaks DDP. */
export class RocketChatSocket {
  readonly #link: ChannelLink<RocketChatConfig>
  readonly #events: RocketChatEvents
  readonly #connection: EventConnection
  readonly #caughtUp = Promise.withResolvers<void>()
  #nextCall = 1

  constructor(link: ChannelLink<RocketChatConfig>, events: RocketChatEvents) {
    this.#link = link
    this.#events = events
    const flush = () => events.flush()
    this.#connection = new EventConnection({ system: 'rocketchat', link, flush, closeCode: NORMAL })
  }

  /** Settles when messages arrive and those that were missed are durable. Throws `UpstreamFailure`. */
  async open(url: string): Promise<void> {
    const link = this.#link
    const raw = await link.webSocket(url, { signal: link.signal })
    const socket = new JsonSocket(link, raw, (frame) => this.#read(v.parse(Frame, frame)))
    await this.#connection.open(socket, () => socket.send({ msg: 'connect', version: '1', support: ['1'] }))
    void keepAlive(link, socket, PING_MS, this.#connection.signal)
    // It takes as long as there are messages.
    await this.#connection.until(this.#caughtUp.promise)
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed
  }

  /** The server does not answer it, and shows it for 15 seconds. */
  async typing(room: string, username: string): Promise<void> {
    const params = [`${room}/user-activity`, username, ['user-typing'], {}]
    await this.#connection.send({ msg: 'method', id: `call-${this.#nextCall++}`, method: 'stream-notify-room', params })
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  #read(frame: Frame): FrameWork | undefined {
    const { msg, id, error, collection, fields } = frame
    if (msg === 'ping') return this.#answer({ msg: 'pong', ...(id != null && { id }) })
    if (msg === 'connected') {
      const params = [{ resume: this.#link.config.token }]
      return this.#answer({ msg: 'method', id: LOGIN, method: 'login', params })
    }
    if (msg === 'result' && id === LOGIN) {
      if (error) throw refused('the token', error, 'auth')
      return this.#answer({ msg: 'sub', id: SUBSCRIPTION, name: MESSAGES, params: ['__my_messages__', false] })
    }
    if (msg === 'nosub' && id === SUBSCRIPTION) throw refused('the subscription', error, 'invalid_request')
    if (msg === 'ready') return this.#begin()
    return msg === 'changed' && collection === MESSAGES ? () => this.#events.posted(fields?.args ?? []) : undefined
  }

  #begin(): FrameWork {
    this.#connection.setReady()
    return async () => {
      // Messages that arrive meanwhile wait behind it, so the order is kept.
      await this.#events.catchUp()
      this.#caughtUp.resolve()
    }
  }

  /** Not in the queue of messages: the server waits for a pong for some seconds only. */
  #answer(frame: object): undefined {
    this.#connection.send(frame).catch((error: unknown) => this.#connection.dropWith(endOf(error)))
    return undefined
  }
}

function refused(what: string, error: Frame['error'], reason: 'auth' | 'invalid_request'): UpstreamFailure {
  const why = error?.reason ?? error?.message ?? error?.error ?? 'no reason given'
  return new UpstreamFailure('rocketchat', `rocketchat refused ${what}: ${why}`, { reason, retry: 'never' })
}
