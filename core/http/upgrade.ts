import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ConsolaInstance } from 'consola'
import { checkAuthority } from '../auth/authority.ts'
import type { Principal } from '../auth/principal.ts'
import { Refusal } from '../errors/error.ts'
import { limiterKey } from '../limit/client.ts'
import { parse } from '../schema/parse.ts'
import type { Admission, Caller } from './admission.ts'
import { headersOf } from './exchange.ts'
import { answerHeaders } from './headers.ts'
import type { HoldQueue } from './hold-queue.ts'
import { decodeParams, parseQuery } from './input.ts'
import { endWith } from './listen.ts'
import type { RouteTable, SocketEntry } from './router.ts'
import type { HttpSettings } from './settings.ts'
import { away, normal } from './close-codes.ts'
import type { LiveSocket } from './socket.ts'
import type { Accepted, SocketAdapter } from './socket-adapter.ts'
import { offeredProtocols } from './tickets.ts'
import type { Tickets } from './tickets.ts'

export interface UpgradeDeps {
  readonly settings: () => HttpSettings
  readonly log: ConsolaInstance
  readonly admission: Admission
  readonly holdQueue: HoldQueue
  readonly tickets: Tickets
  readonly table: () => RouteTable
  readonly draining: () => boolean
  onDefect(error: unknown, where: string): void
}
type OnLeave = (listener: () => void) => void
type FoundSocket = NonNullable<ReturnType<RouteTable['findSocket']>>

/** Turns upgrade requests into sockets, by the same steps as a request. A refusal is an HTTP answer. */
export class Upgrades {
  readonly #deps: UpgradeDeps
  #adapter: Promise<SocketAdapter> | undefined
  readonly #live = new Set<LiveSocket>()
  #onEmpty: (() => void) | undefined
  /** Open sockets and upgrades in progress, by address. */
  readonly #perAddress = new Map<string, number>()
  #idleTimer: NodeJS.Timeout | undefined

  constructor(deps: UpgradeDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#live.size
  }

  /** Closes every socket with 1001, and terminates those that are still open after the given time. */
  async end(ms: number): Promise<void> {
    clearInterval(this.#idleTimer)
    this.#idleTimer = undefined
    if (this.#live.size > 0) await this.#closeAll(ms)
    const adapter = await this.#adapter
    adapter?.end()
  }

  async #closeAll(ms: number): Promise<void> {
    for (const socket of this.#live) socket.close(away, 'service restart')
    let timer: NodeJS.Timeout | undefined
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#onEmpty = resolve
      }),
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms)
      }),
    ])
    clearTimeout(timer)
  }

  /** The caller hears the errors of the connection. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const caller = new UpgradeCaller(request)
    let left = socket.destroyed
    const leaveListeners: (() => void)[] = []
    const onClose = (): void => {
      left = true
      for (const listener of leaveListeners) listener()
    }
    socket.on('close', onClose)
    let release: (() => void) | undefined
    try {
      const accepted = await this.#accept(caller, (listener) => leaveListeners.push(listener))
      if (left) return
      release = this.#reserve(accepted.address)
      socket.once('close', release)
      const adapter = await (this.#adapter ??= this.#openAdapter())
      const { answer } = offeredProtocols(caller.header('sec-websocket-protocol'))
      const own = answer === undefined ? [] : ['Sec-WebSocket-Protocol', answer]
      const headers = answerHeaders(caller.requestId, own, caller.cors)
      socket.off('close', onClose)
      adapter.upgrade({ request, socket, head }, accepted, headers)
    } catch (error) {
      release?.()
      this.#refuse(caller, socket, error)
    }
  }

  /**
   * Counts a socket of an address; the returned function takes it back, once. Throws `rate_limit` when the address has
   * too many.
   */
  #reserve(address: string): () => void {
    const { socketsPerAddress = Infinity } = this.#deps.settings()
    const key = limiterKey(address)
    const open = this.#perAddress.get(key) ?? 0
    if (open >= socketsPerAddress)
      throw new Refusal(
        'rate_limit',
        `Too many WebSocket connections from this address (max ${socketsPerAddress}, http.sockets_per_address)`,
        { retryAfterSecs: 60 },
      )
    this.#perAddress.set(key, open + 1)
    let released = false
    return () => {
      if (released) return
      released = true
      const now = (this.#perAddress.get(key) ?? 1) - 1
      if (now > 0) this.#perAddress.set(key, now)
      else this.#perAddress.delete(key)
    }
  }

  /** Closes the sockets whose clients have sent nothing for too long. */
  #closeIdle(): void {
    const { socketIdleMs } = this.#deps.settings()
    for (const socket of this.#live) if (socket.silentMs > socketIdleMs) socket.close(normal, 'idle')
  }

  async #accept(caller: UpgradeCaller, onLeave: OnLeave): Promise<Accepted> {
    const { admission, table } = this.#deps
    if (this.#deps.draining())
      throw new Refusal('service_unavailable', 'The service is shutting down', { retryAfterSecs: 5 })
    admission.origin(caller)
    const first = table().findSocket(caller.path)
    const address = admission.address(caller)
    const limitKey = admission.limitKey(caller, address)
    admission.charge(limitKey, first ? first.entry.route.cost : 1)
    if (!first)
      throw table().methods(caller.path).length > 0
        ? new Refusal('invalid_request', 'This path is no WebSocket')
        : new Refusal('not_found', 'No such path')
    checkHandshake(caller)
    const principal = await this.#authenticate(first.entry, caller, address)
    const found = await this.#waitForPlugin(first, caller, { address, principal }, onLeave)
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
        headers: () => caller.headers(),
      })
      return { entry, state, address, limitKey, principal, generation: admission.auth.generation() }
    } finally {
      leave()
    }
  }

  /** Waits while the plugin is replaced, and finds the route again. */
  async #waitForPlugin(
    found: FoundSocket,
    caller: UpgradeCaller,
    { address, principal }: { readonly address: string; readonly principal: Principal },
    onLeave: OnLeave,
  ): Promise<FoundSocket> {
    const { holdQueue, settings, table } = this.#deps
    const plugin = found.entry.scope.name
    if (!holdQueue.isHeld(plugin)) return found
    const { holdMaxRequests = 256, holdMaxMs = 10_000 } = settings()
    await holdQueue.wait(plugin, { maxRequests: holdMaxRequests, maxMs: holdMaxMs }, onLeave)
    const again = table().findSocket(caller.path)
    if (!again) throw new Refusal('not_found', 'No such path')
    // The ticket is used up: only a route that requires another kind of authentication checks again, and refuses it.
    if (again.entry.route.auth !== found.entry.route.auth) await this.#authenticate(again.entry, caller, address)
    else checkAuthority(principal, again.entry.route.effect)
    return again
  }

  async #authenticate(entry: SocketEntry, caller: UpgradeCaller, address: string): Promise<Principal> {
    const { ticket } = offeredProtocols(caller.header('sec-websocket-protocol'))
    const redeemed =
      entry.route.auth === 'bearer' && ticket !== undefined && caller.header('authorization') === undefined
        ? await this.#deps.tickets.redeem(ticket)
        : undefined
    const principal = redeemed ?? this.#deps.admission.authenticate(entry.route.auth, caller, address)
    checkAuthority(principal, entry.route.effect)
    return principal
  }

  #refuse(caller: UpgradeCaller, socket: Duplex, error: unknown): void {
    if (!(error instanceof Refusal)) {
      const where = `WebSocket ${caller.path}`
      this.#deps.log.error('upgrade failed', { where, requestId: caller.requestId, error })
      this.#deps.onDefect(error, where)
    }
    endWith(socket, error, undefined, [], caller.cors, caller.requestId)
  }

  /** Loads the WebSocket code with the first upgrade. */
  async #openAdapter(): Promise<SocketAdapter> {
    const { settings, log, admission, onDefect } = this.#deps
    const { SocketAdapter } = await import('./socket-adapter.ts')
    this.#idleTimer ??= setInterval(() => this.#closeIdle(), Math.min(settings().socketIdleMs / 2, 60_000)).unref()
    return new SocketAdapter({
      settings,
      log,
      admission,
      onDefect,
      live: this.#live,
      onEmpty: () => this.#onEmpty?.(),
    })
  }

  /** Closes sockets that were opened with a credential that is no longer valid. */
  sweep(): void {
    for (const socket of this.#live) socket.check()
  }
}

function checkHandshake(caller: UpgradeCaller): void {
  if (caller.method !== 'GET' || caller.header('upgrade')?.toLowerCase() !== 'websocket')
    throw new Refusal('invalid_request', 'Only WebSocket upgrades are served')
  if (
    !/^[+/0-9A-Za-z]{22}==$/.test(caller.header('sec-websocket-key') ?? '') ||
    caller.header('sec-websocket-version') !== '13'
  )
    throw new Refusal('invalid_request', 'The WebSocket handshake is malformed')
  checkProtocols(caller.header('sec-websocket-protocol'))
}

/** The library would refuse a malformed header itself, but without the headers that every answer carries. */
function checkProtocols(header: string | undefined): void {
  if (header === undefined) return
  const names = header.split(',').map((name) => name.trim())
  if (names.every((name) => /^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name)) && new Set(names).size === names.length) return
  throw new Refusal('invalid_request', 'The Sec-WebSocket-Protocol header is malformed')
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
  headers(): Readonly<Record<string, string>> {
    return headersOf(this.#request)
  }
  setCors(headers: readonly string[]): void {
    this.cors = headers
  }
}
