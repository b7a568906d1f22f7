import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ConsolaInstance } from 'consola'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import type { Principal } from '../auth/principal.ts'
import type { Admission } from './admission.ts'
import { away } from './close-codes.ts'
import type { SocketEntry } from './router.ts'
import type { HttpSettings } from './settings.ts'
import { LiveSocket } from './socket.ts'
import type { Wire } from './socket.ts'

/** A dead peer is found after two rounds of pings. */
const HEARTBEAT_MS = 120_000

export interface SocketAdapterDeps {
  readonly settings: () => HttpSettings
  readonly log: ConsolaInstance
  readonly admission: Admission
  /** The open sockets. */
  readonly live: Set<LiveSocket>
  /** Called when the last socket has closed. */
  onEmpty(): void
  onDefect(error: unknown, where: string): void
}
/** An upgrade that passed every check, and the state that `accept` of its route returned. */
export interface Accepted {
  readonly entry: SocketEntry
  readonly state: unknown
  readonly address: string
  /** Of `Admission.limitKey`. */
  readonly limitKey: string
  readonly principal: Principal
  readonly generation: number
}
/** A request to upgrade, as Node hands it over. */
export interface UpgradeRequest {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

/** Connects the WebSocket library to the sockets of plugins. */
export class SocketAdapter {
  readonly #deps: SocketAdapterDeps
  readonly #server: WebSocketServer
  /** Those that have sent nothing since the last round of pings. */
  readonly #silent = new Set<WebSocket>()
  readonly #timer: NodeJS.Timeout

  constructor(deps: SocketAdapterDeps) {
    this.#deps = deps
    const { socketIdleMs, socketFrameBytes } = deps.settings()
    this.#server = new WebSocketServer({
      noServer: true,
      handleProtocols: () => false,
      // Compression costs 240 KB per idle socket.
      perMessageDeflate: false,
      // Above the limit of a frame: a client slightly over it gets an error instead of being cut off.
      maxPayload: socketFrameBytes * 4,
    })
    this.#timer = setInterval(() => this.#ping(), Math.min(socketIdleMs, HEARTBEAT_MS)).unref()
  }

  /** Switches protocols. `headers` is a flat list of names and values. */
  upgrade({ request, socket, head }: UpgradeRequest, accepted: Accepted, headers: readonly string[]): void {
    const addHeaders = (lines: string[]): void => {
      for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
    }
    this.#server.once('headers', addHeaders)
    try {
      this.#server.handleUpgrade(request, socket, head, (peer) => this.#open(peer, socket, accepted))
    } finally {
      this.#server.off('headers', addHeaders)
    }
  }

  /** Terminates the sockets that are still open. */
  end(): void {
    clearInterval(this.#timer)
    for (const peer of this.#server.clients) peer.terminate()
  }

  #open(peer: WebSocket, raw: Duplex, accepted: Accepted): void {
    const { log, live, onEmpty } = this.#deps
    const isHeard = (): boolean => this.#silent.delete(peer)
    peer.on('ping', isHeard)
    peer.on('pong', isHeard)
    peer.on('error', (error) => log.debug('a socket failed', { error }))
    const socket = openSocket(peer, accepted, this.#deps)
    if (!socket) return
    live.add(socket)
    peer.on('message', (data: Buffer, isBinary) => {
      isHeard()
      if (isBinary) socket.receiveBinary()
      else socket.receive(data.toString())
    })
    const wake = (): void => socket.wake()
    raw.on('drain', wake)
    peer.on('close', () => {
      raw.off('drain', wake)
      isHeard()
      live.delete(socket)
      if (live.size === 0) onEmpty()
      void socket.gone()
    })
    void socket.open()
  }

  #ping(): void {
    for (const peer of this.#server.clients) {
      if (this.#silent.has(peer)) {
        peer.terminate()
        continue
      }
      this.#silent.add(peer)
      if (peer.readyState === peer.OPEN) peer.ping()
    }
  }
}

/** `undefined` when the plugin was unloaded since it accepted the upgrade. */
function openSocket(peer: WebSocket, accepted: Accepted, deps: SocketAdapterDeps): LiveSocket | undefined {
  const { settings, log, admission, onDefect } = deps
  const { entry, state, address, limitKey, principal, generation } = accepted
  const { route } = entry
  try {
    return new LiveSocket(toWire(peer), {
      entry,
      state,
      clientAddress: address,
      principal,
      log,
      limits: settings,
      onDefect,
      charge: (text) => admission.charge(limitKey, route.costOf?.(text) ?? route.frameCost),
      allowed: () => route.auth !== 'bearer' || admission.auth.holds(principal, generation),
    })
  } catch (error) {
    log.debug('the plugin of a socket was unloaded before the socket opened', { error })
    peer.close(away, 'service restart')
    return undefined
  }
}

function toWire(peer: WebSocket): Wire {
  return {
    send: (text) => peer.send(text),
    close: (code, reason) => peer.close(code, reason),
    terminate: () => peer.terminate(),
    get bufferedBytes() {
      return peer.bufferedAmount
    },
  }
}
