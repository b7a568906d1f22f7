import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import { endOf, JsonSocket, pause, trimSlashes } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { MastodonConfig } from './config.ts'
import type { MastodonEvents } from './events.ts'
import { Frame, Notified } from './wire.ts'

const NORMAL = 1000
const CHECK_MS = 60_000

/**
 * The stream of notifications. It tells that there is something to read; what it loses, as it may, is found by the
 * reads at intervals.
 */
export class MastodonStream {
  readonly #link: ChannelLink<MastodonConfig>
  readonly #events: MastodonEvents
  readonly #controller = new AbortController()
  #socket: JsonSocket | undefined
  #closed: Promise<ConnectionEnd> | undefined
  #failure: unknown

  constructor(link: ChannelLink<MastodonConfig>, events: MastodonEvents) {
    this.#link = link
    this.#events = events
  }

  get closed(): Promise<ConnectionEnd> {
    if (!this.#closed) throw new Error('The stream was not opened')
    return this.#closed
  }

  /** Settles when mentions arrive and those that were missed are durable. Throws `UpstreamFailure`. */
  async open(address: string): Promise<void> {
    const raw = await this.#link.webSocket(`${trimSlashes(address)}/api/v1/streaming?stream=user:notification`, {
      headers: { authorization: `Bearer ${this.#link.config.token}` },
      signal: this.#link.signal,
    })
    const socket = new JsonSocket(this.#link, raw, (frame) => this.#read(frame))
    this.#socket = socket
    this.#closed = this.#watch(socket)
    try {
      await this.#events.read()
    } catch (error) {
      await this.close()
      this.#link.signal.throwIfAborted()
      throw error
    }
    void this.#check(socket)
  }

  async close(): Promise<void> {
    await this.#socket?.close(NORMAL)
    await this.#closed
  }

  /** How it fails is told by `closed`. */
  async #check(socket: JsonSocket): Promise<void> {
    try {
      while (await pause(this.#link, CHECK_MS, this.#controller.signal)) {
        socket.ping()
        await this.#events.read()
      }
    } catch (error) {
      this.#failure = error
      await socket.close(NORMAL)
    }
  }

  async #watch(socket: JsonSocket): Promise<ConnectionEnd> {
    const { failure = this.#failure, code } = await socket.ended
    this.#controller.abort()
    try {
      await this.#events.flush()
    } catch (error) {
      // An older position holds: what came after it is read again.
      this.#link.log.warn('The position in the mentions on Mastodon could not be saved', { error })
    }
    return failure === undefined
      ? { retry: 'later', reason: `mastodon closed the stream with ${code}` }
      : endOf(failure)
  }

  #read(raw: unknown): FrameWork | undefined {
    const { event, payload, error } = v.parse(Frame, raw)
    if (error != null)
      throw new UpstreamFailure('mastodon', `mastodon refused the stream: ${error}`, { reason: 'auth', retry: 'never' })
    return event === 'notification' && isMention(payload) ? () => this.#events.read() : undefined
  }
}

/** Other notifications, such as that of a new follower, are not read. */
function isMention(payload: unknown): boolean {
  const notified = v.safeParse(Notified, typeof payload === 'string' ? readJson(payload) : payload)
  return notified.success && notified.output.type === 'mention'
}
