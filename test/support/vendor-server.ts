import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Fault } from '../contract/provider.ts'
import { drained } from './fake-provider.ts'

export interface RecordedCall {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON, `undefined` when it is none. */
  readonly body: unknown
  /** Settles when the exchange is over: whether the whole answer went out. */
  readonly closed: Promise<boolean>
}
/** What happens to a stream once its pieces are written: `held` keeps it open, the others are faults of the line. */
export type Line = 'whole' | 'held' | 'reset' | 'split' | 'slow-bytes'
export interface Answering {
  json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): void
  text(status: number, body: string, type: string): void
  /** As it is, with no headers but these. */
  raw(status: number, headers: Readonly<Record<string, string>>, body: string): void
  /** Sends each piece by itself. */
  stream(type: string, pieces: readonly (string | Uint8Array)[], line?: Line): Promise<void>
}
export interface VendorServer extends AsyncDisposable {
  readonly origin: string
  readonly calls: readonly RecordedCall[]
}

/**
 * A real HTTP server for a fake of a vendor: it keeps what arrives and breaks lines as it is told. What is said is
 * the fake's.
 */
export async function startVendor(
  handle: (call: RecordedCall, answer: Answering) => Promise<void> | void,
): Promise<VendorServer> {
  const calls: RecordedCall[] = []
  let origin = ''

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const closed = new Promise<boolean>((resolve) => response.once('close', () => resolve(response.writableFinished)))
    let body: unknown
    try {
      body = JSON.parse(text)
    } catch {
      body = undefined /* a form, or nothing */
    }
    const call: RecordedCall = {
      method: request.method ?? '',
      url: new URL(request.url ?? '/', origin),
      headers: request.headers,
      text,
      body,
      closed,
    }
    calls.push(call)
    await handle(call, answering(response))
  }

  const server = createServer((request, response) => {
    take(request, response).catch((error: unknown) => {
      if (!response.destroyed) response.destroy(error instanceof Error ? error : undefined)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answering(response: ServerResponse): Answering {
  return {
    json(status, body, headers = {}) {
      response.writeHead(status, { 'content-type': 'application/json; charset=UTF-8', ...headers })
      response.end(JSON.stringify(body))
    },
    text(status, body, type) {
      response.writeHead(status, { 'content-type': type })
      response.end(body)
    },
    raw(status, headers, body) {
      response.writeHead(status, headers)
      response.end(body)
    },
    async stream(type, pieces, line = 'whole') {
      response.writeHead(200, { 'content-type': type })
      const step = line === 'slow-bytes' ? 1 : line === 'split' ? 7 : Infinity
      for (const piece of pieces) {
        const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
        for (let at = 0; at < bytes.length && !response.destroyed; at += step) {
          if (!response.write(bytes.subarray(at, Math.min(bytes.length, at + step)))) await drained(response)
          await turn()
        }
      }
      if (line === 'reset') {
        await turn()
        response.socket?.resetAndDestroy()
      } else if (line !== 'held' && !response.destroyed) response.end()
    },
  }
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * An event stream with a fault. `said` and `end` are what a healthy answer is made of, `overloaded` what the vendor
 * says when it breaks down.
 */
export function faulty(
  answer: Answering,
  fault: Fault,
  {
    said,
    end,
    overloaded,
  }: { readonly said: readonly string[]; readonly end: readonly string[]; readonly overloaded: readonly string[] },
): Promise<void> | void {
  const stream = (pieces: readonly string[], line?: Line): Promise<void> =>
    answer.stream('text/event-stream', pieces, line)
  switch (fault) {
    case 'overloaded':
      return stream([...said, ...overloaded])
    case 'cut':
      return stream(said)
    case 'reset':
      return stream(said, 'reset')
    case 'html':
      return answer.text(200, '<!doctype html><title>Sign in</title>', 'text/html')
    case 'empty':
      return stream([])
    case 'malformed-one':
      return stream(['data: {"type": [\n\n', ...said, ...end])
    case 'malformed-all':
      return stream(['data: {"type": [\n\n', 'data: 5\n\n', 'data: nonsense\n\n', ...end])
    case 'endless-line':
      return stream(['data: ', ...Array.from({ length: 10 }, () => 'x'.repeat(1_000_000))])
    case 'split':
    case 'slow-bytes':
      return stream([...said, ...end], fault)
  }
}
