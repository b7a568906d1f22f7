import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import { requestListener } from './http.ts'
import type { PlatformHandler, PlatformServer } from './http.ts'

/** A WebSocket of the adapter. */
export interface Peer {
  /** Bytes as they are, anything else as JSON. */
  send(frame: unknown): void
  close(code: number): void
  /** Cuts the line, without a close frame. */
  cut(): void
}
export interface PeerHandlers {
  /** A frame as JSON; `undefined` when it is none. */
  frame(frame: unknown): void
  /** A frame of bytes. Those that are not taken come as JSON, too. */
  bytes?(frame: Uint8Array): void
  closed?(code: number): void
}
/** Takes a WebSocket, or refuses it with a status. */
export type AcceptPeer = (peer: Peer, request: IncomingMessage) => PeerHandlers | number

/** A server on loopback for HTTP and WebSockets. */
export async function startSocketServer(handle: PlatformHandler, accept: AcceptPeer): Promise<PlatformServer> {
  let origin = ''
  const server = createServer((request, response) => requestListener(handle, origin)(request, response))
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (client) => connect(client, request, accept))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const client of sockets.clients) client.terminate()
      server.closeAllConnections()
      await closed
    },
  }
}

function connect(client: WebSocket, request: IncomingMessage, accept: AcceptPeer): void {
  const handlers = accept(
    {
      send: (frame) => client.send(frame instanceof Uint8Array ? frame : JSON.stringify(frame)),
      close: (code) => client.close(code),
      cut: () => client.terminate(),
    },
    request,
  )
  if (typeof handlers === 'number') return client.close(handlers)
  client.on('message', (data, isBinary) => {
    if (isBinary && handlers.bytes) handlers.bytes(new Uint8Array(data as Buffer))
    else handlers.frame(parsed(String(data)))
  })
  client.on('close', (code) => handlers.closed?.(code))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether something is there, and who waits for it. */
export class Presence<T> {
  #value: T | undefined
  readonly #waiting = new Set<() => void>()

  get value(): T | undefined {
    return this.#value
  }
  set(value: T | undefined): void {
    this.#value = value
    if (value === undefined) return
    for (const resume of this.#waiting) resume()
    this.#waiting.clear()
  }
  /** Removes it if it is still this one. */
  remove(value: T): void {
    if (this.#value === value) this.#value = undefined
  }
  async wait(): Promise<T> {
    while (this.#value === undefined) await new Promise<void>((resolve) => this.#waiting.add(resolve))
    return this.#value
  }
}
