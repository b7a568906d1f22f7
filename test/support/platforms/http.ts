import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PATIENCE_MS } from '../patience.ts'
import type { PlatformFault, PlatformMessage } from './platform.ts'

/** A request that reached a fake platform. */
export interface PlatformCall {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly bytes: Uint8Array
  /** The body as JSON; `undefined` when it is none. */
  readonly json: unknown
  /** The fields and files of a multipart body. Rejects when it is none. */
  form(): Promise<FormData>
}
/** What a fake answers: JSON, unless it wants the response itself. */
export interface PlatformAnswer {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}
/** Handles a request. `undefined`: the handler has written the response, or keeps it open. */
export type PlatformHandler = (
  call: PlatformCall,
  response: ServerResponse,
) => PlatformAnswer | undefined | Promise<PlatformAnswer | undefined>

/** An HTTP server on loopback for a fake platform. */
export interface PlatformServer extends AsyncDisposable {
  readonly origin: string
}
export async function startPlatformServer(handle: PlatformHandler): Promise<PlatformServer> {
  let origin = ''
  const server = createServer((request, response) => requestListener(handle, origin)(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Answers the requests of an HTTP server with what the handler says. */
export function requestListener(handle: PlatformHandler, origin: string) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    serve(request, response, origin, handle).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  origin: string,
  handle: PlatformHandler,
): Promise<void> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk as Uint8Array)
  const bytes = new Uint8Array(Buffer.concat(chunks))
  const type = request.headers['content-type'] ?? ''
  const answer = await handle(
    {
      method: request.method ?? '',
      url: new URL(request.url ?? '/', origin),
      headers: request.headers,
      bytes,
      json: type.startsWith('application/json') ? readJson(bytes) : undefined,
      form: () => new Response(bytes, { headers: { 'content-type': type } }).formData(),
    },
    response,
  )
  if (!answer) return
  const { status, body, headers } = answer
  response.writeHead(status, { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers })
  response.end(body instanceof Uint8Array ? body : body === undefined ? undefined : JSON.stringify(body))
}

function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return undefined
  }
}

/** Ends the connection of a response without an answer. */
export function resetConnection(response: ServerResponse): undefined {
  response.socket?.resetAndDestroy()
  return undefined
}

/** Something that is collected and waited for. */
export class Recorded<T> {
  readonly items: T[] = []
  readonly #what: string
  readonly #waiting = new Set<() => void>()

  constructor(what: string) {
    this.#what = what
  }
  add(item: T): void {
    this.items.push(item)
    for (const check of this.#waiting) check()
  }
  /** Settles with all items when there are so many. */
  wait(count: number): Promise<readonly T[]> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(check)
        reject(new Error(`${this.items.length} of ${count} ${this.#what} in time: ${JSON.stringify(this.items)}`))
      }, PATIENCE_MS)
      const check = (): void => {
        if (this.items.length < count) return
        clearTimeout(late)
        this.#waiting.delete(check)
        resolve(this.items)
      }
      this.#waiting.add(check)
      check()
    })
  }
}

/** What a fake platform shows, and the faults that were asked for. */
export class Shown {
  readonly #sent = new Recorded<PlatformMessage>('messages')
  readonly #faults: PlatformFault[] = []
  readonly #byKey = new Map<string, PlatformMessage>()

  get sent(): readonly PlatformMessage[] {
    return this.#sent.items
  }
  waitForSent(count: number): Promise<readonly PlatformMessage[]> {
    return this.#sent.wait(count)
  }
  fail(fault: PlatformFault): void {
    this.#faults.push(fault)
  }
  /** The fault of this request. */
  takeFault(): PlatformFault | undefined {
    return this.#faults.shift()
  }
  /** Shows a message, and returns the one that is shown: an earlier one with the same key, if there is one. */
  show(message: Omit<PlatformMessage, 'edits'>): PlatformMessage {
    const earlier = message.key === undefined ? undefined : this.#byKey.get(message.key)
    if (earlier) return earlier
    const shown = { ...message, edits: [] }
    if (message.key !== undefined) this.#byKey.set(message.key, shown)
    this.#sent.add(shown)
    return shown
  }
  find(id: string): PlatformMessage | undefined {
    return this.sent.find((message) => message.id === id)
  }
  /** Replaces the text of a message. Returns whether there is one. */
  edit(id: string, text: string): boolean {
    const index = this.sent.findIndex((message) => message.id === id)
    const old = this.sent[index]
    if (!old) return false
    this.#sent.items[index] = { ...old, text, edits: [...old.edits, old.text] }
    return true
  }
  /** Takes a message away. Returns whether there was one. */
  remove(id: string): boolean {
    const index = this.sent.findIndex((message) => message.id === id)
    if (index !== -1) this.#sent.items.splice(index, 1)
    return index !== -1
  }
}
