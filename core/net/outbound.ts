import { lookup as systemLookup } from 'node:dns/promises'
import type { Socket } from 'node:net'
import type { ConsolaInstance } from 'consola'
import { EntryPoint, stopping } from './entry-point.ts'
import type { Fetch } from './fetch.ts'
import { Owners } from './shared-exchanges.ts'
import type { PluginConnections } from './plugin-connections.ts'
import type { Scope } from '../scope/scope.ts'
import type { PluginConnector } from './connection.ts'
import type { Abandon } from './shared-exchanges.ts'
import type { OwnListeners } from './policy.ts'
import { Watchdog } from './watchdog.ts'

export interface OutboundSettings {
  /** Hosts, addresses and CIDRs that are permitted although they are private. Metadata addresses never are. */
  readonly allow: readonly string[]
  readonly headersTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Of a body after decompression. */
  readonly maxBytes: number
  readonly maxRedirects: number
  readonly connectTimeoutMs?: number
  /** For a whole exchange unless the request gives its own. Requests of operators have no limit but their own. */
  readonly totalTimeoutMs?: number
  /** Sockets that one plugin may have open. */
  readonly maxPluginConnections?: number
}
/** Every address of a name, both families. Rejects when there is none. */
export type Resolve = (hostname: string) => Promise<readonly { readonly address: string; readonly family: number }[]>
export interface OutboundOptions {
  readonly settings: () => OutboundSettings
  readonly log?: ConsolaInstance
  readonly resolve?: Resolve
  /** Where the daemon itself is reached. */
  readonly own?: OwnListeners
}
/** Opens sockets under one set of rules. */
export type Connector = Pick<EntryPoint, 'connect' | 'checkConnection' | 'connectTimeoutMs'>
export interface Outbound extends AsyncDisposable {
  readonly fetch: Fetch
  /** For addresses of the operator, such as a provider's base URL: loopback or private, never a metadata service. */
  forOperator(): Fetch
  /** Throws the refusal that a request to this address would get, as far as known now. Sends nothing. */
  admit(url: string | URL): Promise<void>
  /** Connects to the host and port of an address, under the rules of `fetch`. The caller ends the connection. */
  connect(url: URL, signal: AbortSignal): Promise<Socket>
  /** Throws when the rules, as they are now, would not have let `connect` make this connection. */
  checkConnection(url: URL, socket: Socket): void
  /** What a plugin opens connections with. `operator`: to addresses that the operator sets. */
  connectorFor(scope: Scope, operator: boolean): PluginConnector
  /** Closes connections of plugins that changed rules do not permit any more. */
  recheck(): void
  /** The same for an address that the operator sets. */
  admitForOperator(url: string | URL): Promise<void>
}

/**
 * The only way out to the network. Connections are kept for reuse per origin and policy; proxies of the environment are
 * ignored.
 */
export function createOutbound(options: OutboundOptions): Outbound {
  const shared = { open: new Set<Abandon>(), owners: new Owners(), dog: new Watchdog() }
  const connected = new Set<PluginConnections>()
  let closed = false
  const deps = {
    settings: options.settings,
    resolve: options.resolve ?? ((hostname: string) => systemLookup(hostname, { all: true })),
    own: options.own,
    shared,
    isClosed: () => closed,
  }
  const guarded = new EntryPoint(false, deps)
  const operator = new EntryPoint(true, deps)
  const fetchGuarded = guarded.fetch.bind(guarded) as Fetch
  const fetchForOperator = operator.fetch.bind(operator) as Fetch
  return {
    fetch: fetchGuarded,
    forOperator: () => fetchForOperator,
    admit: (url) => guarded.admit(url),
    connect: (url, signal) => guarded.connect(url, signal),
    checkConnection: (url, socket) => guarded.checkConnection(url, socket),
    connectorFor(scope, forOperator) {
      const deps = { scope, settings: options.settings, connector: forOperator ? operator : guarded, all: connected }
      let loading: Promise<PluginConnections> | undefined
      const loaded = (): Promise<PluginConnections> =>
        (loading ??= import('./plugin-connections.ts').then((module) => new module.PluginConnections(deps)))
      return {
        connect: async (target) => (await loaded()).connect(target),
        startTls: async (connection, tls) => (await loaded()).startTls(connection as Socket, tls),
        webSocket: async (url, request) => (await loaded()).webSocket(url, request),
      }
    },
    recheck() {
      for (const connections of connected) connections.recheck()
    },
    admitForOperator: (url) => operator.admit(url),
    async [Symbol.asyncDispose]() {
      closed = true
      for (const abandon of shared.open) abandon(stopping('outbound'))
      guarded.destroy()
      operator.destroy()
      shared.dog.close()
    },
  }
}
