import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/server'
import type { ByteStream } from 'svc/sdk'
import { BoundedEventStore } from './event-store.ts'
import type { EventLimits } from './event-store.ts'

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
 * The transport of one session. A stream whose client does not read is cut at a limit: the client connects again and
 * gets what it missed, as far as that is kept.
 */
export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  readonly #maxUnread: number
  readonly #sizes: WeakMap<object, number>
  readonly #meters = new Map<RequestId | undefined, StreamMeter>()
  readonly #running = new Set<RequestId>()
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
  /** Before their handlers run: one may answer before anything else happens. */
  begin(ids: readonly RequestId[]): void {
    const meter: StreamMeter = { ids, written: 0, read: 0, cut: undefined }
    for (const id of ids) {
      this.#running.add(id)
      this.#meters.set(id, meter)
    }
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
    if (this.#running.delete(id)) this.#closeIfDone(id)
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
    const meter = this.#meters.get(key)
    if (meter) {
      meter.written += sizeOf(this.#sizes, message)
      if (meter.written - meter.read > this.#maxUnread) {
        meter.cut?.()
        this.#meters.delete(key)
      }
    }
    await super.send(message, options)
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
