import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../errors/error.ts'
import type { GuardedResponse } from './headers.ts'

/** One request and what may be done with it, over a socket or without one. */
export interface Exchange {
  readonly method: string
  /** As received: still encoded, without the query. */
  readonly path: string
  /** The query without its question mark. */
  readonly query: string
  readonly requestId: string
  readonly upgrade: boolean
  /** The address of the peer, and nothing it says about itself. */
  readonly peer: string
  readonly hasBody: boolean
  /** The status of the answer; 0 while there is none. */
  readonly status: number
  header(name: string): string | undefined
  /** All headers, by lower-case name. */
  headers(): Readonly<Record<string, string>>
  /**
   * The whole body. Throws `payload_too_large`, which names the key of the configuration if there is one, or
   * `invalid_request` when it was cut off.
   */
  read(maxBytes: number, key?: string): Promise<Uint8Array>
  setCors(headers: readonly string[]): void
  /** Runs once, when the answer is sent (`complete`) or the client left before. */
  onClose(listener: (complete: boolean) => void): void
}

/** What is still read, and thrown away, of a body that was refused: so that the sender gets to read the answer. */
const discardBytes = 1_048_576
const discardMs = 5_000

/** The headers of a request, whose size Node limits. */
export function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as const],
    ),
  )
}

export class NodeExchange implements Exchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly requestId: string
  readonly upgrade = false
  readonly hasBody: boolean
  readonly request: IncomingMessage
  readonly response: GuardedResponse
  #consumed = false
  #ending: ((complete: boolean) => void) | undefined

  constructor(request: IncomingMessage, response: GuardedResponse) {
    this.request = request
    this.response = response
    this.method = request.method ?? 'GET'
    const target = originForm(request.url ?? '/')
    const mark = target.indexOf('?')
    this.path = mark === -1 ? target : target.slice(0, mark)
    this.query = mark === -1 ? '' : target.slice(mark + 1)
    this.requestId = response.requestId ??= randomUUID()
    const { headers } = request
    this.hasBody =
      headers['transfer-encoding'] !== undefined ||
      (headers['content-length'] !== undefined && headers['content-length'] !== '0')
  }

  get status(): number {
    return this.response.headersSent ? this.response.statusCode : 0
  }
  get peer(): string {
    return this.request.socket.remoteAddress ?? ''
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  headers(): Readonly<Record<string, string>> {
    return headersOf(this.request)
  }

  setCors(headers: readonly string[]): void {
    this.response.cors = headers
  }

  onClose(listener: (complete: boolean) => void): void {
    const { response } = this
    if (response.destroyed || response.closed) {
      listener(response.writableFinished)
      return
    }
    const earlier = this.#ending
    this.#ending =
      earlier === undefined
        ? listener
        : (complete) => {
            earlier(complete)
            listener(complete)
          }
    if (earlier === undefined) response.on('close', () => this.#closed())
  }

  #closed(): void {
    if (this.hasBody && !this.#consumed) this.#discard()
    this.#ending?.(this.response.writableFinished)
  }

  read(maxBytes: number, key?: string): Promise<Uint8Array> {
    const { request } = this
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge(maxBytes, key))
    // The client waits to be asked for its body.
    if (/^100-continue$/i.test(request.headers.expect ?? '') && request.httpVersion === '1.1')
      this.response.writeContinue()
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let size = 0
      const settle = (): void => {
        request.off('data', onData)
        request.off('end', onEnd)
        request.off('error', onCut)
        request.off('close', onCut)
      }
      const onData = (chunk: Buffer): void => {
        size += chunk.length
        if (size <= maxBytes) {
          chunks.push(chunk)
          return
        }
        settle()
        reject(tooLarge(maxBytes, key))
      }
      const onEnd = (): void => {
        this.#consumed = true
        settle()
        resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size))
      }
      const onCut = (): void => {
        settle()
        reject(new Refusal('invalid_request', 'The body was cut off'))
      }
      request.on('data', onData)
      request.on('end', onEnd)
      request.on('error', onCut)
      request.on('close', onCut)
    })
  }

  /** The connection stays usable for a client that ends its body soon; one that goes on is cut. */
  #discard(): void {
    const { request } = this
    const { socket } = request
    if (request.complete || socket.destroyed) return
    const before = socket.bytesRead
    const deadline = performance.now() + discardMs
    // Node throws the rest away without an event, so the socket's own counter is watched.
    const watch = setInterval(() => {
      if (request.complete || socket.destroyed) clearInterval(watch)
      else if (socket.bytesRead - before > discardBytes || performance.now() > deadline) {
        clearInterval(watch)
        socket.destroy()
      }
    }, 100).unref()
    request.resume()
  }
}

function tooLarge(maxBytes: number, key: string | undefined): Refusal {
  return new Refusal(
    'payload_too_large',
    `The body is larger than ${maxBytes} bytes${key === undefined ? '' : `, which is all ${key} allows`}`,
    { details: { max_bytes: maxBytes } },
  )
}

/** A proxy may send the whole address as target; only its path is ours to read, and the Host header still decides. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  const authority = /^https?:\/\/[^/?#]*/i.exec(target)
  const rest = authority ? target.slice(authority[0].length) : target
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** A request that came without a socket. */
export class WebExchange implements Exchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly requestId: string = randomUUID()
  readonly upgrade = false
  readonly peer = '127.0.0.1'
  readonly hasBody: boolean
  readonly request: Request
  readonly #host: string
  cors: readonly string[] | undefined
  status = 0
  #closed: boolean | undefined
  #listeners: ((complete: boolean) => void)[] = []

  constructor(request: Request) {
    const url = new URL(request.url)
    this.request = request
    this.method = request.method
    this.path = url.pathname
    this.query = url.search.slice(1)
    this.#host = url.host
    this.hasBody = request.body !== null
    request.signal.addEventListener('abort', () => this.close(false), { once: true })
  }

  header(name: string): string | undefined {
    return this.request.headers.get(name) ?? (name === 'host' ? this.#host : undefined)
  }
  headers(): Readonly<Record<string, string>> {
    return { host: this.#host, ...Object.fromEntries(this.request.headers) }
  }

  setCors(headers: readonly string[]): void {
    this.cors = headers
  }

  onClose(listener: (complete: boolean) => void): void {
    if (this.#closed !== undefined) listener(this.#closed)
    else this.#listeners.push(listener)
  }

  /** Called by whoever sends the answer on. */
  close(complete: boolean): void {
    if (this.#closed !== undefined) return
    this.#closed = complete
    for (const listener of this.#listeners.splice(0)) listener(complete)
  }

  async read(maxBytes: number, key?: string): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    let size = 0
    if (this.request.body)
      for await (const chunk of this.request.body) {
        size += chunk.byteLength
        if (size > maxBytes) throw tooLarge(maxBytes, key)
        chunks.push(chunk)
      }
    return Buffer.concat(chunks, size)
  }
}
