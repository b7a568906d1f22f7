import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import { EventConnection, FrameSocket, pause } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { FeishuEvents } from './events.ts'
import { Fragments } from './fragments.ts'
import { answerFrame, DATA, frameCodec, pingFrame } from './frame.ts'
import type { Frame } from './frame.ts'
import { Callback } from './wire.ts'

const NORMAL = 1000
/** What the connection waits between two signs of life, whatever Feishu says. */
const MIN_PING_SECS = 10
const MAX_PING_SECS = 120
const MAX_FRAME_BYTES = 16_777_216

export interface LongConnectionAddress {
  readonly url: string
  readonly pingSecs: number | undefined
}

/** One long connection, over which Feishu sends events. */
export class LongConnection {
  readonly #link: ChannelLink<unknown>
  readonly #events: FeishuEvents
  readonly #fragments = new Fragments()
  readonly #connection: EventConnection

  constructor(link: ChannelLink<unknown>, events: FeishuEvents) {
    this.#link = link
    this.#events = events
    this.#connection = new EventConnection({ system: 'feishu', link, closeCode: NORMAL })
  }

  async open({ url, pingSecs = MAX_PING_SECS }: LongConnectionAddress): Promise<void> {
    const raw = await this.#link.webSocket(url, { signal: this.#link.signal, maxBytes: MAX_FRAME_BYTES })
    const socket = new FrameSocket(this.#link, raw, (frame) => this.#read(frame as Frame), frameCodec)
    this.#connection.follow(socket)
    const seconds = Math.min(Math.max(pingSecs, MIN_PING_SECS), MAX_PING_SECS)
    void this.#keepAlive(socket, serviceOf(url), seconds * 1000)
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  async #keepAlive(socket: FrameSocket, service: number, intervalMs: number): Promise<void> {
    const { signal } = this.#connection
    // What cannot be sent any more is told by the end of the socket.
    while (await pause(this.#link, intervalMs, signal)) await socket.send(pingFrame(service)).catch(() => undefined)
  }

  #read(frame: Frame): FrameWork | undefined {
    if (frame.method !== DATA) return undefined
    const payload = this.#fragments.join(frame)
    return payload && (() => this.#accept(frame, payload))
  }

  /** Feishu sends an event again that is not answered within three seconds; what comes twice is dropped. */
  async #accept(frame: Frame, payload: Uint8Array): Promise<void> {
    await this.#events.receive(readCallback(payload))
    await this.#connection.send(answerFrame(frame, { code: 200 }))
  }
}

function readCallback(payload: Uint8Array): Callback {
  const parsed = v.safeParse(Callback, readJson(new TextDecoder().decode(payload)))
  if (parsed.success) return parsed.output
  throw new UpstreamFailure('feishu', 'feishu sent an event in a form that cannot be read', {
    reason: 'malformed',
    retry: 'later',
  })
}

/** The number of the service that the connection belongs to. */
function serviceOf(url: string): number {
  const service = Number(new URL(url).searchParams.get('service_id'))
  return Number.isSafeInteger(service) && service >= 0 ? service : 0
}
