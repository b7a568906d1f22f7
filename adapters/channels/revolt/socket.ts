import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, EventConnection, JsonSocket, pause } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { RevoltConfig } from './config.ts'
import type { RevoltEvents } from './events.ts'
import { Bulk, Event, Problem, Ready } from './wire.ts'

const PING_MS = 20_000
/** Errors of the handshake that another attempt does not mend. */
const REFUSALS: ReadonlySet<string> = new Set(['InvalidSession', 'InvalidCredentials', 'NotAuthenticated'])

/** One connection to the events of the server. */
export class RevoltSocket {
  readonly #link: ChannelLink<RevoltConfig>
  readonly #events: RevoltEvents
  readonly #connection: EventConnection
  #isAnswered = true

  constructor(link: ChannelLink<RevoltConfig>, events: RevoltEvents) {
    this.#link = link
    this.#events = events
    this.#connection = new EventConnection({ system: 'revolt', link, flush: () => events.flush() })
  }

  /** Settles when messages arrive. Throws `UpstreamFailure`. */
  async open(url: string): Promise<void> {
    const { signal } = this.#link
    // Of all that the server has for the start, channels alone are needed.
    const address = new URL(url)
    for (const [key, value] of [
      ['version', '1'],
      ['format', 'json'],
      ['ready', 'channels'],
    ] as const)
      address.searchParams.set(key, value)
    const raw = await this.#link.webSocket(address.href, { signal })
    const socket = new JsonSocket(this.#link, raw, (frame) => this.#read(v.parse(Event, frame)))
    const greeting = { type: 'Authenticate', token: this.#link.config.token }
    await this.#connection.open(socket, () => socket.send(greeting))
    void this.#keepAlive(socket)
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed
  }

  async typing(channel: string): Promise<void> {
    await this.#connection.send({ type: 'BeginTyping', channel })
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  #read(event: Event): FrameWork | undefined {
    switch (event.type) {
      case 'Error':
        throw failureOf(event)
      case 'Logout':
        throw refused('the token is not valid any more')
      case 'Pong':
        this.#isAnswered = true
        return undefined
      case 'Ready':
        this.#connection.setReady()
        // It takes as long as there are channels. Messages that arrive meanwhile wait behind it, so the order is kept.
        return () => this.#events.catchUp(v.parse(Ready, event).channels)
      case 'Bulk':
        return this.#readAll(v.parse(Bulk, event).v)
      default:
        return this.#workOf(event)
    }
  }

  #readAll(events: readonly Event[]): FrameWork {
    const works = events.map((event) => this.#workOf(event))
    return async () => {
      for (const work of works) await work?.()
    }
  }

  #workOf(event: Event): FrameWork | undefined {
    const { type } = event
    if (type === 'Message') return () => this.#events.message(event)
    if (type === 'MessageUpdate') return () => this.#events.update(event)
    if (type === 'ChannelCreate') return async () => this.#events.noteChannel(event)
    if (type === 'ChannelUpdate' || type === 'ChannelDelete') return async () => this.#events.forgetChannel(event)
    return undefined
  }

  /** A ping that is not answered before the next means a dead connection. */
  async #keepAlive(socket: JsonSocket): Promise<void> {
    while (await pause(this.#link, PING_MS, this.#connection.signal)) {
      if (!this.#isAnswered)
        return this.#connection.dropWith({ retry: 'later', reason: 'revolt did not answer a ping' })
      this.#isAnswered = false
      try {
        await socket.send({ type: 'Ping', data: this.#link.now() })
      } catch (error) {
        return this.#connection.dropWith(endOf(error))
      }
    }
  }
}

function failureOf(event: Event): UpstreamFailure {
  const { data, error } = v.parse(Problem, event)
  const type = data?.type ?? error ?? 'an error without a name'
  if (REFUSALS.has(type)) return refused(type)
  return new UpstreamFailure('revolt', `revolt ended the connection: ${type}`, {
    reason: 'server_error',
    retry: 'later',
  })
}

function refused(why: string): UpstreamFailure {
  return new UpstreamFailure('revolt', `revolt refused the token: ${why}`, { reason: 'auth', retry: 'never' })
}
