import type { ConsolaInstance } from 'consola'
import { checkedHooks } from '../host/declared-hooks.ts'
import type { AnyPlugin } from '../host/define.ts'
import type { Members } from '../host/instance.ts'
import { createJobs } from '../jobs/jobs.ts'
import type { JobTimer } from '../jobs/timer.ts'
import type { Fetch } from '../net/fetch.ts'
import type { Listen, PluginConnector, PluginNetwork } from '../net/connection.ts'
import { createSpawn } from '../process/spawn.ts'
import type { Scope } from '../scope/scope.ts'
import { scannedVault } from '../tools/secret-scanner.ts'
import type { Home } from './home.ts'
import type { Kernel } from './kernel.ts'

export interface MemberDeps {
  readonly kernel: Kernel
  readonly home: Home
  readonly log: ConsolaInstance
  /** Replaces outbound requests. */
  readonly fetch: Fetch | undefined
  /** Replaces the clock of jobs. */
  readonly jobTimer: ((plugin: string) => JobTimer) | undefined
  /** The configuration of a plugin, as it is now. */
  readonly configOf: (definition: AnyPlugin) => Readonly<Record<string, unknown>>
  /** Definitions of every plugin whose code was read. */
  readonly known: () => readonly AnyPlugin[]
}

/** The members of one plugin's context, tied to its scope. */
export function createMembers(deps: MemberDeps, scope: Scope, definition: AnyPlugin): Members {
  const { kernel, home, log } = deps
  const { programNetwork } = kernel
  return {
    routes: kernel.http.forPlugin(scope),
    credentials: kernel.http.credentials(scope),
    hooks: checkedHooks(kernel.hooks.forPlugin(scope), scope.name, deps.known, log),
    tools: kernel.tools.forPlugin(scope),
    storage: home.storage.forPlugin(scope.name),
    db: home.database.sql,
    vault: scannedVault(kernel.scanner, home.vault.forPlugin(scope.name), scope.name),
    jobs: createJobs(scope, kernel.defects.report, deps.jobTimer?.(scope.name)),
    metrics: kernel.metrics.forPlugin(scope),
    ...createNetwork(deps, scope, definition),
    listen: createListen(deps, scope, definition),
    spawn: createSpawn(scope, {
      folders: kernel.folders,
      ...(programNetwork && { openProxy: (admits, onFailure) => programNetwork.open(admits, onFailure) }),
    }),
  }
}

/** Outbound requests and connections of one plugin; they end when it is unloaded. */
function createNetwork(
  deps: MemberDeps,
  scope: Scope,
  { outbound }: AnyPlugin,
): PluginNetwork & Pick<Members, 'operator'> {
  const network = networkOf(deps, scope, outbound === 'operator')
  return outbound === 'both' ? { ...network, operator: networkOf(deps, scope, true) } : network
}
/** The address is looked up here and not taken from the plugin, so that only the file can open a port. */
function createListen({ kernel: { ownPorts }, configOf }: MemberDeps, scope: Scope, definition: AnyPlugin): Listen {
  return async (options) => {
    const [{ openPort }, { listenAddress }] = await Promise.all([
      import('../net/listener.ts'),
      import('../host/listen-address.ts'),
    ])
    const address = listenAddress(definition, configOf(definition), options.key)
    return await openPort({ scope, ownPorts }, address, options)
  }
}
function networkOf(
  { kernel: { outbound }, fetch: replacement }: MemberDeps,
  scope: Scope,
  mayReachPrivate: boolean,
): PluginNetwork {
  const send = replacement ?? (mayReachPrivate ? outbound?.forOperator() : outbound?.fetch) ?? unreachable
  return {
    fetch: (url, request) => send(url, { ...request, owner: scope.signal }),
    admit: async (url) => {
      await (mayReachPrivate ? outbound?.admitForOperator(url) : outbound?.admit(url))
    },
    ...(outbound?.connectorFor(scope, mayReachPrivate) ?? noConnector),
  }
}

const unreachable = (): Promise<never> => Promise.reject(new Error('this daemon has no network'))
const noConnector: PluginConnector = { connect: unreachable, startTls: unreachable, webSocket: unreachable }
