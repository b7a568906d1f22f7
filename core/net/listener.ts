import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { Refusal } from '../errors/error.ts'
import type { Dispose, Scope } from '../scope/scope.ts'
import type { AcceptedConnection, ListenOptions, PortListener } from './connection.ts'

export interface ListenerDeps {
  readonly scope: Scope
  /** Ports the daemon listens on: nothing that goes out comes back in. */
  readonly ownPorts: Set<number>
}
interface Endpoint {
  readonly host: string
  readonly port: number
}

/** Opens a port for a plugin. It and its connections are in the ledger of the scope and end with it. */
export async function openPort(
  { scope, ownPorts }: ListenerDeps,
  endpoint: Endpoint,
  { accept, key, maxConnections, maxPerAddress = maxConnections }: ListenOptions,
): Promise<PortListener> {
  const connections = new Connections(scope, { max: maxConnections, maxPerAddress })
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS })
  server.on('connection', (socket) => {
    if (connections.add(socket)) accept(socket as AcceptedConnection)
  })
  await listen(server, endpoint, key)
  const { address: host, port } = server.address() as AddressInfo
  const end = async (): Promise<void> => {
    ownPorts.delete(port)
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    connections.destroy()
    await closed
  }
  ownPorts.add(port)
  const close = await enterLedger(scope, `${host}:${port}`, end)
  return {
    host,
    port,
    get connections() {
      return connections.size
    },
    close: async () => await close(),
  }
}

/** The plugin may have been unloaded while the port was opened. */
async function enterLedger(scope: Scope, label: string, end: () => Promise<void>): Promise<Dispose> {
  try {
    return scope.own('port', label, end)
  } catch (error) {
    await end()
    throw error
  }
}

async function listen(server: Server, { host, port }: Endpoint, key: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const failed = ({ code = 'unknown error' }: NodeJS.ErrnoException): void =>
      reject(new Refusal('conflict', `Cannot listen on ${host}:${port} (${key}): ${REASONS[code] ?? code}`))
    server.once('error', failed)
    server.listen({ host, port, exclusive: true }, () => {
      server.off('error', failed)
      // Accepting one connection may fail, when the process has too many files open; the next one may work.
      server.on('error', () => undefined)
      resolve()
    })
  })
}

/** Open connections, limited in number for each address and for all. */
class Connections {
  readonly #scope: Scope
  readonly #limits: { readonly max: number; readonly maxPerAddress: number }
  readonly #open = new Set<Socket>()
  readonly #byAddress = new Map<string, number>()

  constructor(scope: Scope, limits: { readonly max: number; readonly maxPerAddress: number }) {
    this.#scope = scope
    this.#limits = limits
  }
  get size(): number {
    return this.#open.size
  }

  /** Whether there was room; otherwise the connection is closed. */
  add(socket: Socket): boolean {
    const address = socket.remoteAddress ?? ''
    const before = this.#byAddress.get(address) ?? 0
    // A plugin learns of errors by the close event; without a listener they would be uncaught.
    socket.on('error', () => undefined)
    if (this.#open.size >= this.#limits.max || before >= this.#limits.maxPerAddress || this.#scope.state !== 'open') {
      socket.destroy()
      return false
    }
    this.#open.add(socket)
    this.#byAddress.set(address, before + 1)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const forget = this.#scope.own('connection', `from ${address}`, async () => {
      socket.destroy()
      await closed
    })
    socket.once('close', () => {
      this.#open.delete(socket)
      const left = (this.#byAddress.get(address) ?? 1) - 1
      if (left > 0) this.#byAddress.set(address, left)
      else this.#byAddress.delete(address)
      void forget()
    })
    return true
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy()
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EACCES: 'this user may not use the port; choose one above 1023',
  EADDRNOTAVAIL: 'this machine does not have the address',
}
/** How long a connection is silent before the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 60_000
