import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ConsolaInstance } from 'consola'
import type { NodeAdapter } from 'crossws/adapters/node'
import { checkAuthority } from '../auth/authority.ts'
import type { Principal } from '../auth/principal.ts'
import { Refusal } from '../errors/error.ts'
import { limiterKey } from '../limit/client.ts'
import { parse } from '../schema/parse.ts'
import type { Admission, Caller } from './admission.ts'
import { answerHeaders } from './headers.ts'
import type { Holds } from './hold.ts'
import { decodeParams, parseQuery } from './input.ts'
import { endWith } from './listen.ts'
import type { RouteTable, SocketEntry } from './router.ts'
import type { HttpSettings } from './settings.ts'
import { away, LiveSocket, normal } from './socket.ts'
import { offeredProtocols } from './tickets.ts'
import type { Tickets } from './tickets.ts'

type Adapter = NodeAdapter
export interface UpgradeParts {
  readonly settings: () => HttpSettings
  readonly log: ConsolaInstance
  readonly admission: Admission
  readonly holds: Holds
  readonly tickets: Tickets
  readonly table: () => RouteTable
  readonly draining: () => boolean
  onDefect(error: unknown, where: string): void
}
/** A dead peer is found after two rounds of pings. */
const heartbeatMs = 120_000
interface Accepted {
  readonly entry: SocketEntry
  readonly state: unknown
  readonly address: string
  readonly principal: Principal
  readonly generation: number
}

/**
 * Turns upgrade requests into sockets, by the same steps in the same order as a request; a refusal is a complete HTTP
 * answer.
 */
export class Upgrades {
  #parts: UpgradeParts
  #adapter: Promise<Adapter> | undefined
  #live = new Set<LiveSocket>()
  #empty: (() => void) | undefined
  /** Open ones and those about to be, by address. */
  #perAddress = new Map<string, number>()
  #idle: NodeJS.Timeout | undefined

  constructor(parts: UpgradeParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#live.size
  }

  /** Ends every socket with 1001, and after the given time cuts those that did not answer. */
  async end(ms: number): Promise<void> {
    clearInterval(this.#idle)
    this.#idle = undefined
    if (this.#live.size === 0) return
    for (const socket of this.#live) socket.close(away, 'service restart')
    let timer: NodeJS.Timeout | undefined
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#empty = resolve
      }),
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms)
      }),
    ])
    clearTimeout(timer)
    const adapter = await this.#adapter
    adapter?.closeAll(away, 'service restart', true)
  }

  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const caller = new UpgradeCaller(request)
    let left = false
    const gone: (() => void)[] = []
    const onClose = (): void => {
      left = true
      for (const tell of gone) tell()
    }
    // Stays: between here and the library's own listener there is a turn of the loop.
    socket.on('error', () => socket.destroy())
    socket.on('close', onClose)
    let leave: (() => void) | undefined
    try {
      const accepted = await this.#accept(caller, (listener) => gone.push(listener))
      if (left) return
      leave = this.#enter(accepted.address)
      socket.once('close', leave)
      const adapter = await (this.#adapter ??= this.#open())
      const { answer } = offeredProtocols(caller.header('sec-websocket-protocol'))
      const headers = new Headers()
      const all = answerHeaders(
        caller.requestId,
        answer === undefined ? [] : ['Sec-WebSocket-Protocol', answer],
        caller.cors,
      )
      for (let at = 0; at < all.length; at += 2) headers.append(all[at] ?? '', all[at + 1] ?? '')
      // The adapter hands the request to its hooks and keeps it for the life of the socket; ours need nothing but the
      // context, and a
      // real Request would be several kilobytes of every idle socket.
      const web = { url: 'http://localhost/', context: { accepted, headers } } as unknown as Request
      socket.off('close', onClose)
      await adapter.handleUpgrade(request, socket, head, web)
    } catch (error) {
      leave?.()
      this.#refuse(caller, socket, error)
    }
  }

  /**
   * Takes one of the places of an address; the returned function gives it back, once. Throws `rate_limit` when there
   * is none.
   */
  #enter(address: string): () => void {
    const { socketsPerAddress = Infinity } = this.#parts.settings()
    const key = limiterKey(address)
    const open = this.#perAddress.get(key) ?? 0
    if (open >= socketsPerAddress)
      throw new Refusal(
        'rate_limit',
        `Too many WebSocket connections from this address (max ${socketsPerAddress}, http.sockets_per_address)`,
        { retryAfterSecs: 60 },
      )
    this.#perAddress.set(key, open + 1)
    let left = false
    return () => {
      if (left) return
      left = true
      const now = (this.#perAddress.get(key) ?? 1) - 1
      if (now > 0) this.#perAddress.set(key, now)
      else this.#perAddress.delete(key)
    }
  }

  /** Ends the sockets whose clients have sent nothing for too long. */
  #endIdle(): void {
    const { socketIdleMs } = this.#parts.settings()
    for (const socket of this.#live) if (socket.silentMs > socketIdleMs) socket.close(normal, 'idle')
  }

  async #accept(caller: UpgradeCaller, gone: (listener: () => void) => void): Promise<Accepted> {
    const { admission, holds, settings, table } = this.#parts
    if (this.#parts.draining())
      throw new Refusal('service_unavailable', 'The service is shutting down', { retryAfterSecs: 5 })
    admission.origin(caller)
    let found = table().findSocket(caller.path)
    const address = admission.address(caller)
    admission.charge(address, found ? found.entry.route.cost : 1)
    if (!found)
      throw table().methods(caller.path).length > 0
        ? new Refusal('invalid_request', 'This path is no WebSocket')
        : new Refusal('not_found', 'No such path')
    if (caller.method !== 'GET' || caller.header('upgrade')?.toLowerCase() !== 'websocket')
      throw new Refusal('invalid_request', 'Only WebSocket upgrades are served')
    if (
      !/^[+/0-9A-Za-z]{22}==$/.test(caller.header('sec-websocket-key') ?? '') ||
      caller.header('sec-websocket-version') !== '13'
    ) {
      throw new Refusal('invalid_request', 'The WebSocket handshake is malformed')
    }
    checkProtocols(caller.header('sec-websocket-protocol'))
    const principal = this.#authenticate(found.entry, caller, address)
    const plugin = found.entry.scope.name
    if (holds.holds(plugin)) {
      const { holdMaxRequests = 256, holdMaxMs = 10_000 } = settings()
      await holds.wait(plugin, { maxRequests: holdMaxRequests, maxMs: holdMaxMs }, gone)
      const again = table().findSocket(caller.path)
      if (!again) throw new Refusal('not_found', 'No such path')
      // A ticket is used up by now; a route that asks for more than before refuses it.
      if (again.entry.route.auth !== found.entry.route.auth) this.#authenticate(again.entry, caller, address)
      else checkAuthority(principal, again.entry.route.effect)
      found = again
    }
    const { entry, params } = found
    const decoded = decodeParams(params)
    const leave = entry.scope.enter()
    try {
      const state: unknown = await entry.route.accept({
        params: entry.route.params ? parse(entry.route.params, decoded, 'path') : decoded,
        query: entry.route.query ? parse(entry.route.query, parseQuery(caller.query), 'query') : undefined,
        requestId: caller.requestId,
        principal,
        clientAddress: address,
        header: (name: string) => caller.header(name),
      })
      return { entry, state, address, principal, generation: admission.auth.generation() }
    } finally {
      leave()
    }
  }

  #authenticate(entry: SocketEntry, caller: UpgradeCaller, address: string): Principal {
    const { ticket } = offeredProtocols(caller.header('sec-websocket-protocol'))
    const offered =
      entry.route.auth === 'bearer' && ticket !== undefined && caller.header('authorization') === undefined
        ? this.#parts.tickets.redeem(ticket)
        : undefined
    const principal = offered ?? this.#parts.admission.authenticate(entry.route.auth, caller, address)
    checkAuthority(principal, entry.route.effect)
    return principal
  }

  #refuse(caller: UpgradeCaller, socket: Duplex, error: unknown): void {
    if (!(error instanceof Refusal)) {
      const where = `WebSocket ${caller.path}`
      this.#parts.log.error('upgrade failed', { where, requestId: caller.requestId, error })
      this.#parts.onDefect(error, where)
    }
    endWith(socket, error, undefined, [], caller.cors, caller.requestId)
  }

  /**
   * The WebSocket code is loaded with the first upgrade. Compression stays off: it costs 240 KB for every idle
   * socket.
   */
  async #open(): Promise<Adapter> {
    const { default: nodeAdapter } = await import('crossws/adapters/node')
    const sockets = new WeakMap<object, LiveSocket>()
    const { settings, log, admission, onDefect } = this.#parts
    this.#idle ??= setInterval(() => this.#endIdle(), Math.min(settings().socketIdleMs / 2, 60_000)).unref()
    return nodeAdapter({
      idleTimeout: Math.min(settings().socketIdleMs, heartbeatMs) / 1000,
      // Beyond the limit of a frame, so that whoever is a little over it is told so instead of cut off.
      serverOptions: { perMessageDeflate: false, maxPayload: settings().socketFrameBytes * 4 },
      hooks: {
        upgrade: (request) => ({ headers: contextOf(request).headers }),
        open: (peer) => {
          const { accepted } = contextOf(peer)
          const wire = {
            send: (text: string) => {
              peer.send(text)
            },
            close: (code: number, reason: string) => peer.close(code, reason),
            terminate: () => peer.terminate(),
            get bufferedBytes() {
              return peer.bufferedAmount
            },
          }
          let live: LiveSocket
          try {
            live = new LiveSocket(wire, {
              entry: accepted.entry,
              state: accepted.state,
              clientAddress: accepted.address,
              principal: accepted.principal,
              log,
              limits: settings,
              onDefect,
              charge: (text) =>
                admission.charge(
                  accepted.address,
                  accepted.entry.route.costOf?.(text) ?? accepted.entry.route.frameCost,
                ),
              allowed: () =>
                accepted.entry.route.auth !== 'bearer' || admission.auth.holds(accepted.principal, accepted.generation),
            })
          } catch (error) {
            // The plugin left between the answer and here.
            log.debug('a socket opened into an unloaded plugin', { error })
            peer.close(away, 'service restart')
            return
          }
          sockets.set(peer, live)
          this.#live.add(live)
          void live.open()
        },
        message: (peer, message) => {
          const live = sockets.get(peer)
          if (typeof message.rawData === 'string') live?.receive(message.rawData)
          else live?.receiveBinary()
        },
        drain: (peer) => sockets.get(peer)?.wake(),
        error: (_peer, error) => log.debug('a socket failed', { error }),
        close: (peer) => {
          const live = sockets.get(peer)
          if (!live) return
          this.#live.delete(live)
          if (this.#live.size === 0) this.#empty?.()
          void live.gone()
        },
      },
    })
  }

  /** Sockets opened with a key or a credential that no longer holds end now. */
  sweep(): void {
    for (const socket of this.#live) socket.check()
  }
}

/** The library would refuse these itself, without the headers every answer carries. */
function checkProtocols(header: string | undefined): void {
  if (header === undefined) return
  const names = header.split(',').map((name) => name.trim())
  if (names.every((name) => /^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name)) && new Set(names).size === names.length) return
  throw new Refusal('invalid_request', 'The Sec-WebSocket-Protocol header is malformed')
}

interface Context {
  readonly accepted: Accepted
  readonly headers: Headers
}
function contextOf(holder: object): Context {
  const context: unknown = 'context' in holder ? holder.context : undefined
  if (!isContext(context)) throw new Error('a socket without its accepted upgrade')
  return context
}
function isContext(value: unknown): value is Context {
  return typeof value === 'object' && value !== null && 'accepted' in value && 'headers' in value
}

class UpgradeCaller implements Caller {
  readonly upgrade = true
  readonly requestId = randomUUID()
  readonly method: string
  readonly path: string
  readonly query: string
  cors: readonly string[] | undefined
  #request: IncomingMessage

  constructor(request: IncomingMessage) {
    this.#request = request
    this.method = request.method ?? 'GET'
    const url = request.url ?? '/'
    const mark = url.indexOf('?')
    this.path = mark === -1 ? url : url.slice(0, mark)
    this.query = mark === -1 ? '' : url.slice(mark + 1)
  }
  get peer(): string {
    return this.#request.socket.remoteAddress ?? ''
  }
  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  setCors(headers: readonly string[]): void {
    this.cors = headers
  }
}
