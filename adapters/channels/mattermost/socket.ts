import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { EventConnection, JsonSocket, keepAlive } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { MattermostConfig } from './config.ts'
import type { MattermostEvents } from './events.ts'
import { Frame } from './wire.ts'

const PING_MS = 30_000
const NORMAL = 1000

/** One connection to the WebSocket of the server. */
export class MattermostSocket {
  readonly #link: ChannelLink<MattermostConfig>
  readonly #events: MattermostEvents
  readonly #connection: EventConnection
  readonly #caughtUp = Promise.withResolvers<void>()
  #nextSeq: number | undefined

  constructor(link: ChannelLink<MattermostConfig>, events: MattermostEvents) {
    this.#link = link
    this.#events = events
    const flush = () => events.flush()
    this.#connection = new EventConnection({ system: 'mattermost', link, flush, closeCode: NORMAL })
  }

  /** Settles when posts arrive and those that were missed are durable. Throws `UpstreamFailure`. */
  async open(url: string): Promise<void> {
    const link = this.#link
    const socket = new JsonSocket(link, await link.webSocket(url, { signal: link.signal }), (frame) =>
      this.#read(frame),
    )
    const greeting = { seq: 1, action: 'authentication_challenge', data: { token: link.config.token } }
    await this.#connection.open(socket, () => socket.send(greeting))
    void keepAlive(link, socket, PING_MS, this.#connection.signal)
    // It takes as long as there are posts.
    await this.#connection.until(this.#caughtUp.promise)
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed
  }

  async close(): Promise<void> {
    await this.#connection.close()
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
    if (event === 'hello') {
      this.#connection.setReady()
      return async () => {
        // Posts that arrive meanwhile wait behind it, so the order is kept.
        await this.#events.catchUp()
        this.#caughtUp.resolve()
      }
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
