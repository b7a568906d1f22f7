import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { Recorded } from './http.ts'

/** An IRC server for what ngircd does not do: SASL, tags, refusals. Answers each line as the script says. */
export class IrcLineServer implements AsyncDisposable {
  readonly url: string
  readonly lines = new Recorded<string>('lines')
  readonly #close: () => void
  #socket: Socket | undefined

  static async start(script: (line: string) => readonly string[]): Promise<IrcLineServer> {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return new IrcLineServer(server, script)
  }
  private constructor(server: ReturnType<typeof createServer>, script: (line: string) => readonly string[]) {
    this.url = `irc://127.0.0.1:${(server.address() as AddressInfo).port}`
    this.#close = () => {
      this.#socket?.destroy()
      server.close()
    }
    server.on('connection', (socket) => {
      this.#socket = socket
      socket.on('error', () => undefined)
      const lines = createInterface(socket)
      lines.on('error', () => undefined)
      lines.on('line', (line) => {
        this.lines.add(line)
        for (const answer of script(line)) socket.write(`${answer}\r\n`)
      })
    })
  }
  write(...lines: readonly string[]): void {
    for (const line of lines) this.#socket?.write(`${line}\r\n`)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#close()
  }
}
