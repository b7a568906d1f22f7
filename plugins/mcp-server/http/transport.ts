import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import type { AuthInfo, JSONRPCMessage, JSONRPCRequest, RequestId, Transport } from '@modelcontextprotocol/server'
import type { ByteStream } from 'svc/sdk'
import { BoundedEventStore } from './event-store.ts'
import type { EventLimits } from './event-store.ts'
import { FirstAnswer } from './first-answer.ts'

export interface SessionTransportOptions extends EventLimits {
  readonly max_unread_bytes: number
  readonly retry_ms: number
  readonly max_body_bytes: number
}
/** How much of a stream was written, and read. */
interface StreamMeter {
  /** The requests that it answers. */
  readonly ids: readonly RequestId[]
  written: number
  read: number
  cut: (() => void) | undefined
}

/**
 * The transport of one session. Most requests have an answer and nothing else: it goes out as plain JSON, which costs one
 * write and keeps nothing. A stream whose client does not read is cut at a limit: the client connects again and
 * gets what it missed, as far as that is kept.
 */
export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  readonly #maxUnread: number
  readonly #sizes: WeakMap<object, number>
  readonly #meters = new Map<RequestId | undefined, StreamMeter>()
  readonly #running = new Set<RequestId>()
  readonly #unanswered = new Map<RequestId, FirstAnswer>()
  #deliver: Transport['onmessage']
  #open = 0

  constructor(id: string, options: SessionTransportOptions, now: () => number) {
    const sizes = new WeakMap<object, number>()
    super({
      sessionIdGenerator: () => id,
      eventStore: new BoundedEventStore(options, now, (message) => sizeOf(sizes, message)),
      retryInterval: options.retry_ms,
      maxRequestBodySize: options.max_body_bytes,
    })
    this.#sizes = sizes
    this.#maxUnread = options.max_unread_bytes
  }
  /** Streams that a client reads. */
  get openStreams(): number {
    return this.#open
  }

  /** Requests that have no answer yet. */
  get running(): number {
    return this.#running.size
  }
  isRunning(id: RequestId): boolean {
    return this.#running.has(id)
  }

  /** The server listens by now. A request that runs already is not given to it again when its stream is opened. */
  override async start(): Promise<void> {
    this.#deliver = this.onmessage
    const onmessage: Transport['onmessage'] = (message, extra) => {
      if (!('id' in message && 'method' in message && this.#unanswered.has(message.id))) this.#deliver?.(message, extra)
    }
    Object.assign(this, { onmessage })
    await super.start()
  }
  /** Runs a request that the SDK would accept. Its answer, or `undefined` when `stream` has to open a stream for it. */
  answer(request: JSONRPCRequest, authInfo: AuthInfo): Promise<JSONRPCMessage | undefined> {
    const first = new FirstAnswer()
    this.#running.add(request.id)
    this.#unanswered.set(request.id, first)
    this.#deliver?.(request, { authInfo })
    return first.answer
  }
  async stream(web: Request, request: JSONRPCRequest, authInfo: AuthInfo): Promise<Response> {
    this.#measure([request.id])
    try {
      return await this.handleRequest(web, { parsedBody: request, authInfo })
    } finally {
      this.#unanswered.get(request.id)?.streamed()
    }
  }
  override async close(): Promise<void> {
    for (const first of this.#unanswered.values()) first.needStream()
    await super.close()
  }

  /** Before their handlers run: one may answer before anything else happens. */
  begin(ids: readonly RequestId[]): void {
    for (const id of ids) this.#running.add(id)
    this.#measure(ids)
  }
  #measure(ids: readonly RequestId[]): void {
    const meter: StreamMeter = { ids, written: 0, read: 0, cut: undefined }
    for (const id of ids) this.#meters.set(id, meter)
  }
  /** They were not handled. */
  refused(ids: readonly RequestId[]): void {
    for (const id of ids) {
      this.#running.delete(id)
      this.#meters.delete(id)
    }
  }
  /** The client does not wait for this answer any more, so none will be sent. */
  forget(id: RequestId): void {
    if (!this.#running.delete(id)) return
    const first = this.#unanswered.get(id)
    if (first)
      void first.onStream(() => {
        this.#unanswered.delete(id)
        this.#closeIfDone(id)
      })
    else this.#closeIfDone(id)
  }
  /** The SDK waits for the answers of a whole batch, also for those to requests that were cancelled. */
  #closeIfDone(id: RequestId): void {
    const ids = this.#meters.get(id)?.ids ?? []
    if (!ids.some((each) => this.#running.has(each))) this.closeSSEStream(id)
  }

  /** The body of an answer as it is sent; `ids` are those of the requests that it answers. */
  metered(body: ReadableStream<Uint8Array>, ids: readonly RequestId[]): ByteStream {
    const reader = body.getReader()
    const keys: readonly (RequestId | undefined)[] = ids.length === 0 ? [undefined] : ids
    const begun = ids.length === 0 ? undefined : this.#meters.get(ids[0])
    const meter = begun ?? { ids, written: 0, read: 0, cut: undefined }
    meter.cut = () => void reader.cancel().catch(() => undefined)
    for (const key of keys) this.#meters.set(key, meter)
    this.#open++
    let isOpen = true
    const ended = (): void => {
      if (!isOpen) return
      isOpen = false
      this.#open--
      for (const key of keys) if (this.#meters.get(key) === meter) this.#meters.delete(key)
    }
    const iterator: AsyncIterator<Uint8Array> = {
      async next() {
        const step = await reader.read()
        if (step.done) {
          ended()
          return { done: true, value: undefined }
        }
        meter.read += step.value.byteLength
        return { done: false, value: step.value }
      },
      async return() {
        ended()
        await reader.cancel()
        return { done: true, value: undefined }
      },
    }
    return { [Symbol.asyncIterator]: () => iterator }
  }

  override async send(message: JSONRPCMessage, options?: { relatedRequestId?: RequestId }): Promise<void> {
    const answered = 'id' in message && !('method' in message) ? message.id : undefined
    if (answered !== undefined) this.#running.delete(answered)
    const key = answered ?? options?.relatedRequestId
    const first = key === undefined ? undefined : this.#unanswered.get(key)
    if (!first) return this.#write(message, answered, key)
    if (answered === undefined) return first.onStream(() => this.#write(message, answered, key))
    if (!first.isAll(message)) await first.onStream(() => this.#write(message, answered, key))
    this.#unanswered.delete(answered)
  }
  async #write(message: JSONRPCMessage, answered: RequestId | undefined, key: RequestId | undefined): Promise<void> {
    const meter = this.#meters.get(key)
    if (meter) {
      meter.written += sizeOf(this.#sizes, message)
      if (meter.written - meter.read > this.#maxUnread) {
        meter.cut?.()
        this.#meters.delete(key)
      }
    }
    await super.send(message, key === undefined ? undefined : { relatedRequestId: key })
    if (answered !== undefined && (meter?.ids.length ?? 0) > 1) this.#closeIfDone(answered)
  }
}

function sizeOf(sizes: WeakMap<object, number>, message: JSONRPCMessage): number {
  const known = sizes.get(message)
  if (known !== undefined) return known
  const size = JSON.stringify(message).length
  sizes.set(message, size)
  return size
}
