import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const SOCKET = '.s.PGSQL.5432'
/** `ReadyForQuery` outside of a transaction: what was sent is committed, or failed. */
const READY = Buffer.from('5a0000000549', 'hex')

/** The line of one daemon to the database: it can be cut, and held up without being closed. */
export class DatabaseLink implements AsyncDisposable {
  /** The folder of the socket at which the daemon finds the database. */
  readonly host: string
  readonly #sockets = new Set<Socket>()
  /** Of those, the ends at the database of connections that hear the other daemons. */
  readonly #listening = new Set<Socket>()
  readonly #server = createServer({ allowHalfOpen: true }, (daemon) => this.#join(daemon))
  readonly #target: string
  #isHeld = false
  #isAway = false
  #losing: { readonly marker: string; readonly lost: () => void; readonly arrives: boolean } | undefined

  private constructor(host: string, target: string) {
    this.host = host
    this.#target = join(target, SOCKET)
  }
  /** `target`: the folder of the socket of PostgreSQL. */
  static async open(target: string): Promise<DatabaseLink> {
    const link = new DatabaseLink(await mkdtemp(join(tmpdir(), 'svc-link-')), target)
    link.#server.listen(join(link.host, SOCKET))
    await once(link.#server, 'listening')
    return link
  }
  urlOf(database: { readonly name: string }): string {
    return `postgres:///${database.name}?host=${encodeURIComponent(this.host)}&user=svc`
  }

  /** The same for a test in this process, with the settings of the address. */
  through(url: string): string {
    const address = new URL(url)
    address.searchParams.set('host', this.host)
    return String(address)
  }
  /** Breaks every connection, and new ones, until it is back. */
  goAway(isAway: boolean): void {
    this.#isAway = isAway
    if (isAway) this.cut()
  }
  /**
   * The next statements with this text among their values are carried out, and the connection breaks before the answer
   * to them. Settles then.
   */
  loseAnswer(marker: string): Promise<void> {
    return new Promise((lost) => {
      this.#losing = { marker, lost, arrives: true }
    })
  }
  /** The same, but they do not arrive: the daemon cannot tell. */
  loseStatements(marker: string): Promise<void> {
    return new Promise((lost) => {
      this.#losing = { marker, lost, arrives: false }
    })
  }
  /** Breaks every connection; new ones work. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
  /** Nothing passes any more, in either direction, and nobody is told. */
  hold(): void {
    this.#isHeld = true
    for (const socket of this.#sockets) socket.pause()
  }
  /** What was held up arrives. */
  release(): void {
    this.#isHeld = false
    for (const socket of this.#sockets) socket.resume()
  }
  /** The daemon hears nothing of the others until `release()`; its statements are answered. */
  deafen(): void {
    for (const socket of this.#listening) socket.pause()
  }

  #join(daemon: Socket): void {
    if (this.#isAway) return void daemon.destroy()
    const database = connect({ path: this.#target, allowHalfOpen: true })
    let lost: (() => void) | undefined
    const pass = (from: Socket, to: Socket, isKept: (bytes: Buffer) => boolean): void => {
      this.#sockets.add(from)
      from.on('data', (bytes: Buffer) => {
        if (isKept(bytes)) to.write(bytes)
      })
      from.on('end', () => to.end())
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.#sockets.delete(from)
        this.#listening.delete(from)
        if (from.destroyed && !from.readableEnded) to.destroy()
      })
      if (this.#isHeld) from.pause()
    }
    pass(daemon, database, (bytes) => {
      if (this.#losing && bytes.includes(this.#losing.marker)) {
        const losing = this.#losing
        this.#losing = undefined
        if (losing.arrives) lost = losing.lost
        else {
          daemon.destroy()
          losing.lost()
          return false
        }
      }
      if (bytes.includes('LISTEN "')) this.#listening.add(database)
      return true
    })
    pass(database, daemon, (bytes) => {
      if (!lost) return true
      if (bytes.subarray(-READY.length).equals(READY)) {
        daemon.destroy()
        lost()
      }
      return false
    })
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    this.#server.close()
    await rm(this.host, { recursive: true, force: true })
  }
}
