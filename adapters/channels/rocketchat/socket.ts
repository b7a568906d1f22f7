import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, JsonSocket, keepAlive, within } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { RocketChatConfig } from './config.ts'
import type { RocketChatEvents } from './events.ts'
import { Frame } from './wire.ts'

const HANDSHAKE_MS = 20_000
const PING_MS = 30_000
const NORMAL = 1000
const MESSAGES = 'stream-room-messages'
const LOGIN = 'login'
const SUBSCRIPTION = 'messages'

/** One connection to the WebSocket of the server, which speaks DDP. */
export class RocketChatSocket {
  readonly #link: ChannelLink<RocketChatConfig>
  readonly #events: RocketChatEvents
  readonly #controller = new AbortController()
  readonly #subscribed = Promise.withResolvers<void>()
  readonly #caughtUp = Promise.withResolvers<void>()
  #socket: JsonSocket | undefined
  #closed: Promise<ConnectionEnd> | undefined
  #nextCall = 1

  constructor(link: ChannelLink<RocketChatConfig>, events: RocketChatEvents) {
    this.#link = link
    this.#events = events
  }

  /** Settles when messages arrive and those that were missed are durable. Throws `UpstreamFailure`. */
  async open(url: string): Promise<void> {
    const raw = await this.#link.webSocket(url, { signal: this.#link.signal })
    const socket = new JsonSocket(this.#link, raw, (frame) => this.#read(v.parse(Frame, frame)))
    this.#socket = socket
    this.#closed = this.#watch(socket)
    const lost = this.#closed.then(({ reason, retry }) => {
      throw new UpstreamFailure('rocketchat', reason, { reason: retry === 'never' ? 'auth' : 'network', retry })
    })
    // Once it is ready, its end is told by `closed`.
    lost.catch(() => undefined)
    try {
      await socket.send({ msg: 'connect', version: '1', support: ['1'] })
      await within(HANDSHAKE_MS, 'rocketchat', Promise.race([this.#subscribed.promise, lost]))
      await Promise.race([this.#caughtUp.promise, lost])
    } catch (error) {
      await this.close()
      this.#link.signal.throwIfAborted()
      throw error
    }
    void keepAlive(this.#link, socket, PING_MS, this.#controller.signal)
  }

  get closed(): Promise<ConnectionEnd> {
    if (!this.#closed) throw new Error('The socket was not opened')
    return this.#closed
  }

  /** The server does not answer it, and shows it for 15 seconds. */
  async typing(room: string, username: string): Promise<void> {
    const params = [`${room}/user-activity`, username, ['user-typing'], {}]
    await this.#socket?.send({ msg: 'method', id: `call-${this.#nextCall++}`, method: 'stream-notify-room', params })
  }

  async close(): Promise<void> {
    await this.#socket?.close(NORMAL)
    await this.#closed
  }

  async #watch(socket: JsonSocket): Promise<ConnectionEnd> {
    const { failure, code } = await socket.ended
    this.#controller.abort()
    try {
      await this.#events.flush()
    } catch (error) {
      // An older position holds: what came after it is read again.
      this.#link.log.warn('The position in the messages of Rocket.Chat could not be saved', { error })
    }
    return failure === undefined
      ? { retry: 'later', reason: `rocketchat closed the connection with ${code}` }
      : endOf(failure)
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
    this.#subscribed.resolve()
    return async () => {
      // Messages that arrive meanwhile wait behind it, so the order is kept.
      await this.#events.catchUp()
      this.#caughtUp.resolve()
    }
  }

  /** Not in the queue of messages: the server waits for a pong for some seconds only. */
  #answer(frame: object): undefined {
    this.#socket?.send(frame).catch(() => this.#socket?.terminate())
    return undefined
  }
}

function refused(what: string, error: Frame['error'], reason: 'auth' | 'invalid_request'): UpstreamFailure {
  const why = error?.reason ?? error?.message ?? error?.error ?? 'no reason given'
  return new UpstreamFailure('rocketchat', `rocketchat refused ${what}: ${why}`, { reason, retry: 'never' })
}
