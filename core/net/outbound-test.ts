import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { Refusal } from '../errors/error.ts'
import { createOutbound } from './outbound.ts'
import type { Outbound, OutboundSettings, Resolve } from './outbound.ts'

/** One request, and whether the guard handled it as it must. */
export interface OutboundCase {
  readonly name: string
  readonly passed: boolean
}

/**
 * Tests the guard of outbound requests against a listener on this machine that counts connections. A client of the same
 * kind as the daemon's own must reach it through no form of its address, and exactly once through the name on the allow
 * list.
 */
export async function testOutbound(signal: AbortSignal): Promise<readonly OutboundCase[]> {
  const target = await Target.open()
  const toLoopback: Resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  const guarded = createClient([], toLoopback)
  const rebinding = createClient([], resolveTo(['198.41.0.4', '127.0.0.1']))
  const listed = createClient(['listed.test'], toLoopback)
  const { port } = target
  const cases: OutboundCase[] = []
  const refused = async (name: string, client: Outbound, url: string, maxConnections = 0): Promise<void> => {
    const before = target.connections
    const isHeld = await isRefused(client, url, signal)
    cases.push({ name, passed: isHeld && target.connections - before <= maxConnections })
  }
  try {
    await refused('this machine by its address', guarded, `http://127.0.0.1:${port}/`)
    await refused('this machine as one number', guarded, `http://2130706433:${port}/`)
    await refused('this machine in IPv6', guarded, `http://[::ffff:127.0.0.1]:${port}/`)
    await refused('this machine in the old IPv6 form', guarded, `http://[::127.0.0.1]:${port}/`)
    await refused('a name that resolves to this machine', guarded, `http://inside.test:${port}/`)
    await refused('a user name in the address', guarded, `http://user@inside.test:${port}/`)
    await refused('another scheme', guarded, 'file:///etc/hostname')
    await refused('a name with one address of this machine', rebinding, `http://moving.test:${port}/`)
    await refused('a redirect from a listed host to a metadata service', listed, `http://listed.test:${port}/away`, 1)
    await refused('a redirect from a listed host to this machine', listed, `http://listed.test:${port}/back`, 1)
    const before = target.connections
    const text = await (await listed.fetch(`http://listed.test:${port}/plain`, { signal })).text()
    cases.push({
      name: 'a host on the allow list is reached once',
      passed: text === 'reached' && target.connections === before + 1 && !target.paths.includes('/inner'),
    })
    return cases
  } finally {
    await Promise.all([guarded, rebinding, listed].map((client) => client[Symbol.asyncDispose]()))
    target.close()
  }
}

/**
 * Counts connections and redirects two of its paths. A bare socket: a second `node:http` server slows down every
 * answer of the first.
 */
class Target {
  readonly paths: string[] = []
  connections = 0
  readonly #server: Server
  /** Kept: a server that is closed has no address any more, and the last request may be read after that. */
  #port = 0

  static async open(): Promise<Target> {
    const target = new Target()
    const server = target.#server
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
    target.#port = (server.address() as AddressInfo).port
    return target
  }
  private constructor() {
    this.#server = createServer((socket) => this.#answer(socket))
  }

  get port(): number {
    return this.#port
  }
  close(): void {
    this.#server.close()
  }

  #answer(socket: Socket): void {
    this.connections++
    socket.on('error', () => socket.destroy()).setTimeout(2_000, () => socket.destroy())
    socket.once('data', (bytes) => {
      const path = bytes.toString('latin1').split(' ', 2)[1] ?? ''
      this.paths.push(path)
      const location = new Map([
        ['/away', 'http://169.254.169.254/latest/'],
        ['/back', `http://127.0.0.1:${this.port}/inner`],
      ]).get(path)
      const status = location === undefined ? '200 OK' : `302 Found\r\nLocation: ${location}`
      socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached`)
    })
  }
}

function createClient(allow: readonly string[], resolve: Resolve): Outbound {
  const settings: OutboundSettings = {
    allow,
    headersTimeoutMs: 1000,
    idleTimeoutMs: 1000,
    maxBytes: 4096,
    maxRedirects: 3,
    connectTimeoutMs: 500,
    totalTimeoutMs: 1500,
  }
  return createOutbound({ settings: () => settings, resolve })
}

/** All addresses in one answer, as a DNS rebinding attack sends them: one to pass a check with, one to connect to. */
function resolveTo(addresses: readonly string[]): Resolve {
  return () => Promise.resolve(addresses.map((address) => ({ address, family: 4 })))
}

async function isRefused({ fetch }: Outbound, url: string, signal: AbortSignal): Promise<boolean> {
  try {
    await (await fetch(url, { signal })).text()
    return false
  } catch (error) {
    return error instanceof Refusal && error.code === 'forbidden'
  }
}
