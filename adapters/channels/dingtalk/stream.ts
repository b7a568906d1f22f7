import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { EventConnection, JsonSocket, keepAlive } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import { TOPIC } from './api.ts'
import { Frame } from './wire.ts'

const PING_MS = 30_000
const NORMAL = 1000

/** One connection in Stream mode. */
export class DingTalkStream {
  readonly #link: ChannelLink<unknown>
  readonly #receive: (message: unknown) => Promise<void>
  readonly #connection: EventConnection

  constructor(link: ChannelLink<unknown>, receive: (message: unknown) => Promise<void>) {
    this.#link = link
    this.#receive = receive
    this.#connection = new EventConnection({ system: 'dingtalk', link, closeCode: NORMAL })
  }

  async open(url: string): Promise<void> {
    const raw = await this.#link.webSocket(url, { signal: this.#link.signal })
    const socket = new JsonSocket(this.#link, raw, (frame) => this.#read(frame))
    this.#connection.follow(socket)
    void keepAlive(this.#link, socket, PING_MS, this.#connection.signal)
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  #read(raw: unknown): FrameWork | undefined {
    const frame = v.parse(Frame, raw)
    const { type, headers } = frame
    if (type === 'SYSTEM' && headers.topic === 'disconnect') return () => this.#leave()
    if (type === 'SYSTEM' && headers.topic !== 'ping') return undefined
    return () => this.#answer(frame)
  }

  /** DingTalk sends again what is not answered within a minute; what comes twice is dropped. */
  async #answer({ type, headers, data }: Frame): Promise<void> {
    if (type === 'CALLBACK' && headers.topic === TOPIC) await this.#receive(readData(data ?? ''))
    await this.#connection.send({
      code: 200,
      headers: { contentType: 'application/json', messageId: headers.messageId ?? '' },
      message: 'OK',
      data: type === 'SYSTEM' ? (data ?? '') : JSON.stringify({ response: null }),
    })
  }

  /** DingTalk is about to close the connection. What came before is answered; the host opens the next one. */
  async #leave(): Promise<void> {
    // Not awaited: the socket ends when its work is done, and this is a part of it.
    void this.#connection.close()
  }
}

/** Unreadable data is dealt with like a message of an unknown form. */
function readData(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
