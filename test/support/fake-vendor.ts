import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { drained } from './fake-provider.ts'

export interface VendorRequest {
  readonly method: string
  /** With its query, as it was sent. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Settles when the exchange is over: whether the whole answer went out. */
  readonly closed: Promise<boolean>
}
export interface Reply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** An answer that comes at once; otherwise `frames` is streamed, as fast as it is read. */
  readonly body?: string | Uint8Array
  readonly frames?: Iterable<string | Uint8Array>
  /**
   * What goes wrong after the frames: `stall` stops without closing, `reset` breaks the connection off. `slow-bytes` sends every byte by
   * itself, `split` cuts frames anywhere.
   */
  readonly fault?: 'stall' | 'reset' | 'slow-bytes' | 'split' | undefined
}
export interface FakeVendor extends AsyncDisposable {
  readonly origin: string
  readonly requests: readonly VendorRequest[]
  /** Settles with the request of this number, counted from 0, when it is there. */
  request(index: number): Promise<VendorRequest>
}

/** A real HTTP server that answers as it is told; what a vendor's wire looks like is known to who tells it. */
export async function startFakeVendor(answer: (request: VendorRequest) => Reply | Promise<Reply>): Promise<FakeVendor> {
  const requests: VendorRequest[] = []
  const waiting = new Map<number, (request: VendorRequest) => void>()

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const closed = new Promise<boolean>((resolve) => response.once('close', () => resolve(response.writableFinished)))
    const heard: VendorRequest = { method: request.method ?? '', path: request.url ?? '/', headers: request.headers, body: Buffer.concat(chunks), closed }
    const index = requests.push(heard) - 1
    waiting.get(index)?.(heard)
    const { status = 200, headers = {}, body, frames = [], fault } = await answer(heard)
    response.writeHead(status, headers)
    if (body !== undefined) { response.end(body); return }
    await stream(response, frames, fault)
    if (fault === 'stall') return
    if (fault === 'reset') { await turn(); response.socket?.resetAndDestroy(); return }
    if (!response.destroyed) response.end()
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => { if (!response.destroyed) response.destroy(error instanceof Error ? error : undefined) })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    request: (index) => {
      const there = requests[index]
      return there ? Promise.resolve(there) : new Promise((resolve) => waiting.set(index, resolve))
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function stream(response: ServerResponse, frames: Iterable<string | Uint8Array>, fault: Reply['fault']): Promise<void> {
  const bytes = Buffer.concat([...frames].map((frame) => (typeof frame === 'string' ? Buffer.from(frame) : frame)))
  const step = fault === 'slow-bytes' ? 1 : fault === 'split' ? 7 : 65_536
  for (let at = 0; at < bytes.length && !response.destroyed; at += step) {
    if (!response.write(bytes.subarray(at, at + step))) await drained(response)
    if (step < 65_536) await turn()
  }
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
