import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, JsonSocket, keepAlive, within } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { MattermostConfig } from './config.ts'
import type { MattermostEvents } from './events.ts'
import { Frame } from './wire.ts'

const HANDSHAKE_MS = 15_000
const PING_MS = 30_000
const NORMAL = 1000

/** One connection to the WebSocket of the server. */
export class MattermostSocket {
  readonly #link: ChannelLink<MattermostConfig>
  readonly #events: MattermostEvents
  readonly #controller = new AbortController()
  readonly #hello = Promise.withResolvers<void>()
  #socket: JsonSocket | undefined
  #closed: Promise<ConnectionEnd> | undefined
  #nextSeq: number | undefined

  constructor(link: ChannelLink<MattermostConfig>, events: MattermostEvents) {
    this.#link = link
    this.#events = events
  }

  /** Settles when posts arrive and those that were missed are durable. Throws `UpstreamFailure`. */
  async open(url: string): Promise<void> {
    const { token } = this.#link.config
    const raw = await this.#link.webSocket(url, { signal: this.#link.signal })
    const socket = new JsonSocket(this.#link, raw, (frame) => this.#read(frame))
    this.#socket = socket
    this.#closed = this.#watch(socket)
    const lost = this.#closed.then(({ reason, retry }) => {
      throw new UpstreamFailure('mattermost', reason, { reason: retry === 'never' ? 'auth' : 'network', retry })
    })
    // Once the server has greeted, its end is told by `closed`.
    lost.catch(() => undefined)
    try {
      await socket.send({ seq: 1, action: 'authentication_challenge', data: { token } })
      await within(HANDSHAKE_MS, 'mattermost', Promise.race([this.#hello.promise, lost]))
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
      this.#link.log.warn('The position in the posts of Mattermost could not be saved', { error })
    }
    return failure === undefined
      ? { retry: 'later', reason: `mattermost closed the connection with ${code}` }
      : endOf(failure)
  }

  #read(raw: unknown): FrameWork | undefined {
    const frame = v.parse(Frame, raw)
    if (frame.status === 'FAIL') {
      const message = `mattermost refused the token: ${frame.error?.message ?? 'no reason given'}`
      throw new UpstreamFailure('mattermost', message, { reason: 'auth', retry: 'never' })
    }
    if (frame.event == null) return undefined
    const isMissing = this.#isMissing(frame.seq)
    const work = this.#workOf(frame)
    if (!isMissing) return work
    return async () => {
      await this.#events.catchUp()
      await work?.()
    }
  }

  #workOf({ event, data }: Frame): FrameWork | undefined {
    if (event === 'hello')
      return async () => {
        // Posts that arrive meanwhile wait behind it, so the order is kept.
        await this.#events.catchUp()
        this.#hello.resolve()
      }
    if (event === 'posted') return () => this.#events.posted(data, false)
    if (event === 'post_edited') return () => this.#events.posted(data, true)
    return undefined
  }

  /** Events are numbered: a number that was left out is an event that was lost. */
  #isMissing(seq: number | null | undefined): boolean {
    if (seq == null) return false
    const isMissing = this.#nextSeq !== undefined && seq > this.#nextSeq
    this.#nextSeq = seq + 1
    return isMissing
  }
}
