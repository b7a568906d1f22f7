import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

/** One frame on its way: four bytes with the length, and the content. */
export interface ProxiedFrame {
  /** Who opened the connection sent it, or the other one. */
  readonly from: 'caller' | 'callee'
  /** Its number in this direction of this connection, from 0. */
  readonly index: number
  readonly content: Buffer
  /** All frames of this direction before it. */
  readonly earlier: readonly Buffer[]
  /** Sends bytes to one side as they are. */
  write(to: 'caller' | 'callee', bytes: Buffer): void
  /** Ends the connection after what was sent. */
  cut(): void
}
/** What goes on instead of a frame: contents of frames, in their order. */
export type Tamper = (frame: ProxiedFrame) => readonly Buffer[]

export const pass: Tamper = ({ content }) => [content]
export function toFrame(content: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.byteLength)
  return Buffer.concat([length, content])
}

/** The man in the middle: forwards connections to a port, and does with the frames what a test says. */
export class FrameProxy implements AsyncDisposable {
  /** Where to; may be set after the start. */
  target = 0
  tamper: Tamper = pass
  /** Connections so far. */
  count = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (caller) => this.#forward(caller))
  }
  static async start(target = 0): Promise<FrameProxy> {
    const proxy = new FrameProxy(createServer())
    proxy.target = target
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening')
    return proxy
  }
  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #forward(caller: Socket): void {
    this.count++
    const callee = connect({ host: '127.0.0.1', port: this.target })
    const sides = { caller, callee }
    for (const [name, socket] of Object.entries(sides)) {
      const other = name === 'caller' ? callee : caller
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('end', () => other.end())
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
      socket.on('data', this.#read(name as 'caller' | 'callee', sides))
    }
  }

  #read(from: 'caller' | 'callee', sides: { readonly caller: Socket; readonly callee: Socket }) {
    let rest = Buffer.alloc(0)
    const earlier: Buffer[] = []
    const to = from === 'caller' ? sides.callee : sides.caller
    return (bytes: Buffer): void => {
      rest = Buffer.concat([rest, bytes])
      while (rest.byteLength >= 4 && rest.byteLength >= 4 + rest.readUInt32BE(0)) {
        const end = 4 + rest.readUInt32BE(0)
        const content = Buffer.from(rest.subarray(4, end))
        rest = rest.subarray(end)
        const frame: ProxiedFrame = {
          from,
          index: earlier.length,
          content,
          earlier: [...earlier],
          write: (side, raw) => void sides[side].write(raw),
          cut: () => {
            sides.caller.end()
            sides.callee.end()
          },
        }
        for (const passed of this.tamper(frame)) to.write(toFrame(passed))
        earlier.push(content)
      }
    }
  }
}
