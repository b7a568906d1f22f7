import { messageOf, pluginsLoaded, wallClock } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import type { PluginContext, Statement } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Approvals } from '../approvals/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import type { Cluster } from '../cluster/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Screening } from '../screening/contract.ts'
import type { Usage } from '../usage/contract.ts'
import type { ServerEntry, Settings } from './config.ts'
import { httpLimits, toPlatformFetch } from './connection/http-fetch.ts'
import { networkOf } from './connection/network.ts'
import { openSession } from './connection/open.ts'
import { McpServerChanged } from './contract.ts'
import type { DecideRights } from './contract.ts'
import { openFeatures } from './features/open.ts'
import type { OpenFeaturesDeps } from './features/open.ts'
import type { OAuthLogins } from './oauth/logins.ts'
import { ServerRegistry } from './servers/server-registry.ts'
import { programOf } from './servers/program.ts'
import type { ServerConfig } from './servers/spec.ts'
import { McpStore } from './servers/store.ts'
import { ToolSet } from './tools/registry.ts'

/** What requests of servers are answered with. */
type Asked = {
  readonly agents: typeof Agents
  readonly approvals: typeof Approvals
  readonly inference: typeof Inference
  readonly screening: typeof Screening
  readonly usage: typeof Usage
  readonly workspaces: typeof Workspaces
}
export interface RuntimeDeps
  extends
    Pick<
      PluginContext<Settings, {}, Asked>,
      'admit' | 'db' | 'fetch' | 'hooks' | 'leaving' | 'log' | 'operator' | 'optional' | 'spawn' | 'tools' | 'vault'
    >,
    Pick<OpenFeaturesDeps, 'origin'> {
  readonly settings: Settings
  readonly audit: Audit
  readonly cluster: Cluster
  readonly daemon: Daemon
  /** For each batch that changes servers. */
  readonly tellChanged: () => readonly Statement[]
  /** Who decides what programs may do, by the kind of their origin. */
  readonly decisions: ReadonlyMap<string, DecideRights>
  readonly counted: (server: string, outcome: 'ok' | 'error' | 'failed') => void
  readonly restarted: (server: string) => void
}

export interface Runtime {
  readonly registry: ServerRegistry
  readonly logins: OAuthLogins
}

/** Everything of the plugin that the first server needs. */
export async function createRuntime(deps: RuntimeDeps, entries: readonly ServerEntry[]): Promise<Runtime> {
  const { settings, daemon, spawn, log } = deps
  const fetchOf = (server: ServerConfig) => networkOf(deps, server)
  const { features, logins } = openFeatures({
    ...deps,
    ...askedOf(deps),
    fetchOf,
    platformFetch: (server, fetch) => toPlatformFetch(fetch, httpLimits(settings, server)),
    find: (name) => registry.servers.find((server) => server.name === name)?.config,
    relist: async (name) => registry.servers.find((server) => server.name === name)?.rescreen(),
    async changed(name) {
      // The login counts whatever the server does next; its state says that.
      await registry.reconnect(name).catch((error: unknown) => log.warn(messageOf(error)))
    },
  })
  const toolSet = new ToolSet({ tools: deps.tools, features, settings, counted: deps.counted })
  const { homeDir } = daemon.config()
  const registry: ServerRegistry = new ServerRegistry({
    ...deps,
    store: new McpStore(deps.db, deps.tellChanged, deps.log),
    features,
    toolSet,
    rightsOf: rightsBy(deps),
    serverDeps: {
      clock: wallClock,
      random: Math.random,
      open: (config, serverLog, signal) =>
        openSession(
          {
            settings,
            features,
            spawn,
            version: daemon.build.version,
            fetchOf,
            programOf: async (server) =>
              programOf(
                { homeDir, credentialsOf: async () => (await registry.secretsFor(server)).credentials },
                await registry.withRights(server),
              ),
            headersOf: async (server) => (await registry.secretsFor(server)).headers,
          },
          config,
          serverLog,
          signal,
        ),
      onRestart: ({ name }) => deps.restarted(name),
    },
    announce: (changed) => {
      const about =
        typeof changed === 'string'
          ? { name: changed, state: 'removed' as const, tools: 0 }
          : { name: changed.name, state: changed.state, tools: changed.tools.filter(({ usable }) => usable).length }
      deps.hooks.emit(McpServerChanged, about).catch((error: unknown) => log.error('a listener failed', error))
    },
  })
  await registry.begin(entries)
  return { registry, logins }
}

const rightsBy =
  ({ daemon, decisions, leaving }: RuntimeDeps): DecideRights =>
  async (program) => {
    const kind = program.origin.split(':')[0] ?? ''
    // The plugin that decides may be loaded after this one.
    if (kind !== 'api' && !decisions.has(kind)) await pluginsLoaded(daemon, 'mcp', leaving)
    return (await decisions.get(kind)?.(program)) ?? {}
  }
const askedOf = ({ optional }: RuntimeDeps) => ({
  agents: () => optional('agents'),
  approvals: () => optional('approvals'),
  inference: () => optional('inference'),
  screening: () => optional('screening'),
  usage: () => optional('usage'),
  workspaces: () => optional('workspaces'),
})
