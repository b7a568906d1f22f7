import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { endOf, JsonSocket, keepAlive } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import { TOPIC } from './api.ts'
import { Frame } from './wire.ts'

const PING_MS = 30_000
const NORMAL = 1000

/** One connection in Stream mode. */
export class DingTalkStream {
  readonly #link: ChannelLink<unknown>
  readonly #receive: (message: unknown) => Promise<void>
  readonly #controller = new AbortController()
  #socket: JsonSocket | undefined
  #closed: Promise<ConnectionEnd> | undefined

  constructor(link: ChannelLink<unknown>, receive: (message: unknown) => Promise<void>) {
    this.#link = link
    this.#receive = receive
  }

  async open(url: string): Promise<void> {
    const raw = await this.#link.webSocket(url, { signal: this.#link.signal })
    const socket = new JsonSocket(this.#link, raw, (frame) => this.#read(frame))
    this.#socket = socket
    this.#closed = this.#watch(socket)
    void keepAlive(this.#link, socket, PING_MS, this.#controller.signal)
  }

  get closed(): Promise<ConnectionEnd> {
    if (!this.#closed) throw new Error('The connection was not opened')
    return this.#closed
  }

  async close(): Promise<void> {
    await this.#socket?.close(NORMAL)
    await this.#closed
  }

  async #watch(socket: JsonSocket): Promise<ConnectionEnd> {
    const { failure, code } = await socket.ended
    this.#controller.abort()
    return failure === undefined
      ? { retry: 'later', reason: `dingtalk closed the connection with ${code}` }
      : endOf(failure)
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
    await this.#socket?.send({
      code: 200,
      headers: { contentType: 'application/json', messageId: headers.messageId ?? '' },
      message: 'OK',
      data: type === 'SYSTEM' ? (data ?? '') : JSON.stringify({ response: null }),
    })
  }

  /** DingTalk is about to close the connection. What came before is answered; the host opens the next one. */
  async #leave(): Promise<void> {
    // Not awaited: the socket ends when its work is done, and this is a part of it.
    void this.#socket?.close(NORMAL)
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
