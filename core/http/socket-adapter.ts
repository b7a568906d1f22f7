import type { ConsolaInstance } from 'consola'
import type { Peer } from 'crossws'
import nodeAdapter from 'crossws/adapters/node'
import type { NodeAdapter } from 'crossws/adapters/node'
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

/** Connects the WebSocket library to the sockets of plugins. Compression stays off: it costs 240 KB per idle socket. */
export function openSocketAdapter(deps: SocketAdapterDeps): NodeAdapter {
  const { settings, log, live } = deps
  const sockets = new WeakMap<object, LiveSocket>()
  return nodeAdapter({
    idleTimeout: Math.min(settings().socketIdleMs, HEARTBEAT_MS) / 1000,
    // Above the limit of a frame: a client slightly over it gets an error instead of being cut off.
    serverOptions: { perMessageDeflate: false, maxPayload: settings().socketFrameBytes * 4 },
    hooks: {
      upgrade: (request) => ({ headers: contextOf(request).headers }),
      open: (peer) => {
        const socket = openSocket(peer, deps)
        if (!socket) return
        sockets.set(peer, socket)
        live.add(socket)
        void socket.open()
      },
      message: (peer, message) => {
        const socket = sockets.get(peer)
        if (typeof message.rawData === 'string') socket?.receive(message.rawData)
        else socket?.receiveBinary()
      },
      drain: (peer) => sockets.get(peer)?.wake(),
      error: (_peer, error) => log.debug('a socket failed', { error }),
      close: (peer) => {
        const socket = sockets.get(peer)
        if (!socket) return
        live.delete(socket)
        if (live.size === 0) deps.onEmpty()
        void socket.gone()
      },
    },
  })
}

/** `undefined` when the plugin was unloaded since it accepted the upgrade. */
function openSocket(peer: Peer, { settings, log, admission, onDefect }: SocketAdapterDeps): LiveSocket | undefined {
  const { entry, state, address, limitKey, principal, generation } = contextOf(peer).accepted
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

function toWire(peer: Peer): Wire {
  return {
    send: (text) => {
      peer.send(text)
    },
    close: (code, reason) => peer.close(code, reason),
    terminate: () => peer.terminate(),
    get bufferedBytes() {
      return peer.bufferedAmount
    },
  }
}

interface Context {
  readonly accepted: Accepted
  readonly headers: Headers
}
function contextOf(holder: object): Context {
  const context: unknown = 'context' in holder ? holder.context : undefined
  if (!isContext(context)) throw new Error('this socket has no accepted upgrade')
  return context
}
function isContext(value: unknown): value is Context {
  return typeof value === 'object' && value !== null && 'accepted' in value && 'headers' in value
}
