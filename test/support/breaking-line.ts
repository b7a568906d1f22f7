import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'

/** How a connection to PostgreSQL breaks. */
export interface Break {
  /** Where: while it is made, on the way to the server, behind what the server did, or in the middle of its answer. */
  readonly at: 'connecting' | 'request' | 'answer' | 'middle'
  /** The client is told by the end of the connection, by a reset, or by an error of this SQLSTATE before its end. */
  readonly by: 'end' | 'reset' | { readonly code: string }
}

/** A line to PostgreSQL over TCP that breaks once, when it is told to and a text passes on it. */
export class BreakingLine implements AsyncDisposable {
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((client) => this.#join(client))
  readonly #target: string
  #armed: { readonly text: string; readonly how: Break; readonly broke: () => void } | undefined

  private constructor(target: string) {
    this.#target = target
  }
  /** `host`: the folder of the socket of the server. */
  static async open(host: string): Promise<BreakingLine> {
    const line = new BreakingLine(join(host, '.s.PGSQL.5432'))
    await once(line.#server.listen(0, '127.0.0.1'), 'listening')
    return line
  }
  /** The address of a database through this line. */
  through(url: string): string {
    const address = new URL(url)
    address.searchParams.delete('host')
    address.hostname = '127.0.0.1'
    address.port = String((this.#server.address() as AddressInfo).port)
    return String(address)
  }

  /** The next connection that sends this text breaks. Settles then. */
  breakAt(text: string, how: Break): Promise<void> {
    return new Promise((broke) => {
      this.#armed = { text, how, broke }
      // With a new connection it breaks at once: those that are open are of no use any more.
      if (how.at === 'connecting') this.cut()
    })
  }
  /** Breaks every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #join(client: Socket): void {
    const server = connect(this.#target)
    const armed = this.#armed
    let due: Break | undefined
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
    if (armed?.how.at === 'connecting') return this.#break(client, armed.how)
    client.on('data', (bytes: Buffer) => {
      const { text, how } = this.#armed ?? {}
      if (how && text !== undefined && bytes.includes(text)) {
        if (how.at === 'request') return this.#break(client, how)
        due = how
      }
      server.write(bytes)
    })
    server.on('data', (bytes: Buffer) => {
      if (due?.at === 'middle') client.write(bytes.subarray(0, middleOf(bytes, due)))
      if (due) return this.#break(client, due)
      client.write(bytes)
    })
  }

  #break(client: Socket, { by }: Break): void {
    const { broke } = this.#armed ?? {}
    this.#armed = undefined
    if (by === 'reset') client.resetAndDestroy()
    else if (by === 'end') client.end()
    else client.end(errorResponse(by.code))
    broke?.()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** A server says an error between two messages only; a connection may end within one. */
function middleOf(answer: Buffer, { by }: Break): number {
  const middle = answer.length >> 1
  if (typeof by === 'string') return middle
  let end = 0
  // Each message has a type, and its length without that.
  for (let next = 0; next <= middle; next += 1 + answer.readUInt32BE(next + 1)) end = next
  return end
}
/** https://www.postgresql.org/docs/15/protocol-message-formats.html */
function errorResponse(code: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mthe connection is ended by a test\0\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeUInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
