import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { UpstreamFailure } from '../errors/error.ts'
import type { OutboundResponse } from './fetch.ts'
import type { Watch, Watchdog } from './watchdog.ts'
import { readJson } from '../schema/nesting.ts'

export interface ReadLimits {
  readonly dog: Watchdog
  readonly idleMs: number
  readonly maxBytes: number
}
/** So much of a body waits here for its reader before the other side has to. */
const MAX_HELD = 262_144

interface Reader {
  readonly stream: Readable
  readonly queue: Buffer[]
  held: number
  bytes: number
  ended: boolean
  over: boolean
}

/** What came since the last look, as one chunk: each goes through all the steps of its reader. */
function takeAll(queue: Buffer[]): Buffer | undefined {
  return queue.length > 1 ? Buffer.concat(queue.splice(0)) : queue.shift()
}

/** The answer to one request, read from its socket as fast as the reader takes it. */
export class Answer implements OutboundResponse {
  readonly status: number
  readonly ok: boolean
  readonly url: string
  readonly #message: IncomingMessage
  readonly #limits: ReadLimits
  readonly #end: () => void
  readonly #system: string
  /** The failure of the reading, set once. */
  #failure: unknown
  #wake: (() => void) | undefined
  #reader: Reader | undefined
  #state: 'unread' | 'reading' | 'over' = 'unread'
  readonly #idle: Watch

  /** `end` is called once when nothing more will be read. */
  constructor(message: IncomingMessage, url: URL, limits: ReadLimits, end: () => void) {
    this.status = message.statusCode ?? 0
    this.ok = this.status >= 200 && this.status < 300
    this.url = url.href
    this.#system = url.hostname
    this.#message = message
    this.#limits = limits
    this.#end = end
    // A body that nobody begins to read is given up as well, or its connection would stay for ever.
    this.#idle = limits.dog.watch(limits.idleMs, () => this.#silent())
    message.on('error', (error) => this.fail(this.#cut(error)))
    message.once('close', () => {
      if (!message.complete) this.fail(this.#cut())
    })
  }

  header(name: string): string | undefined {
    const value = this.#message.headers[name.toLowerCase()]
    return Array.isArray(value) ? value.join(', ') : value
  }

  /** Ends the reading with a failure. The first one counts. */
  fail(failure: unknown): void {
    if (this.#state === 'over' || this.#failure !== undefined) return
    this.#failure = failure
    this.#wake?.()
    this.#close()
  }

  chunks(): AsyncIterableIterator<Uint8Array> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.#close()
        if (this.#reader) this.#reader.over = true
        return { done: true, value: undefined }
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }

  async bytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    for await (const chunk of this.chunks()) chunks.push(chunk)
    return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
  }
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes())
  }
  async json(): Promise<unknown> {
    const text = await this.text()
    try {
      return readJson(text)
    } catch (cause) {
      throw new UpstreamFailure(
        this.#system,
        `${this.#system} answered ${this.status} with something that is not JSON`,
        { reason: 'malformed', retry: 'never', cause },
      )
    }
  }
  toResponse(): Response {
    const headers = new Headers()
    for (const [name, value] of Object.entries(this.#message.headers)) {
      // The body is decoded here, so what described its encoding does not hold any more.
      if (name === 'content-encoding' || name === 'content-length' || value === undefined) continue
      for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one)
    }
    const bodiless = this.status === 204 || this.status === 205 || this.status === 304
    if (bodiless) this.#close()
    const chunks = this.chunks()
    const body = bodiless
      ? null
      : new ReadableStream<Uint8Array>(
          {
            async pull(controller) {
              const { done, value } = await chunks.next()
              if (done) controller.close()
              else controller.enqueue(value)
            },
            async cancel() {
              await chunks.return?.()
            },
          },
          { highWaterMark: 0 },
        )
    return new Response(body, { status: this.status, headers })
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    const reader = this.#begun()
    for (;;) {
      if (reader.over) return { done: true, value: undefined }
      if (this.#failure !== undefined) {
        reader.over = true
        throw this.#failure
      }
      const chunk = takeAll(reader.queue)
      if (chunk) {
        reader.held -= chunk.length
        if (reader.held < MAX_HELD / 2 && reader.stream.isPaused()) reader.stream.resume()
        reader.bytes += chunk.length
        if (reader.bytes <= this.#limits.maxBytes) return { done: false, value: chunk }
        this.fail(
          new UpstreamFailure(this.#system, `${this.#system} sent more than ${this.#limits.maxBytes} bytes`, {
            reason: 'malformed',
            retry: 'never',
          }),
        )
      } else if (reader.ended) {
        reader.over = true
        this.#close()
      } else {
        this.#idle.extend(this.#limits.idleMs)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
      }
    }
  }

  /** Begins to read when it is asked for the first time. */
  #begun(): Reader {
    if (this.#reader) return this.#reader
    if (this.#failure !== undefined) throw this.#failure
    if (this.#state !== 'unread') throw new Error('the body was read already')
    this.#state = 'reading'
    const stream = this.#decoded()
    const reader: Reader = (this.#reader = { stream, queue: [], held: 0, bytes: 0, ended: false, over: false })
    stream.on('data', (chunk: Buffer) => {
      reader.queue.push(chunk)
      reader.held += chunk.length
      if (reader.held > MAX_HELD) stream.pause()
      this.#wake?.()
    })
    stream.once('end', () => {
      reader.ended = true
      this.#wake?.()
    })
    return reader
  }

  #decoded(): Readable {
    const encoding = this.header('content-encoding')?.trim().toLowerCase()
    if (encoding === undefined || encoding === '' || encoding === 'identity') return this.#message
    const decoder =
      encoding === 'gzip' || encoding === 'x-gzip'
        ? createGunzip()
        : encoding === 'br'
          ? createBrotliDecompress()
          : encoding === 'deflate'
            ? createInflate()
            : undefined
    if (!decoder)
      throw new UpstreamFailure(
        this.#system,
        `${this.#system} answered in the encoding "${encoding}", which is not understood`,
        { reason: 'malformed', retry: 'never' },
      )
    decoder.on('error', (cause) =>
      this.fail(
        new UpstreamFailure(this.#system, `${this.#system} sent a body that cannot be decompressed`, {
          reason: 'malformed',
          retry: 'never',
          cause,
        }),
      ),
    )
    return this.#message.pipe(decoder)
  }

  #silent(): void {
    // While the reader is busy with what it got, it is not the other side that is slow.
    if (this.#state === 'reading' && this.#wake === undefined) return
    this.fail(
      new UpstreamFailure(this.#system, `${this.#system} sent nothing for ${this.#limits.idleMs} ms`, {
        reason: 'timeout',
        retry: 'later',
      }),
    )
  }

  #cut(cause?: unknown): UpstreamFailure {
    return new UpstreamFailure(this.#system, `${this.#system} closed the connection in the middle of its answer`, {
      reason: 'cut',
      retry: 'later',
      ...(cause !== undefined && { cause }),
    })
  }

  #close(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#idle.end()
    // After a complete answer the connection goes back to be used again; otherwise it is of no use any more.
    if (!this.#message.complete || !this.#message.readableEnded) this.#message.destroy()
    this.#end()
  }
}
