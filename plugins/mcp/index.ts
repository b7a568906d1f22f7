import { Broadcast, Daemon, DaemonListening, followChanges } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { Metrics, PluginContext } from 'svc/sdk'
import { Agents, AssignablesListed } from '../agents/contract.ts'
import { Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Cluster, MemberEnded } from '../cluster/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Inference } from '../providers/contract.ts'
import { Screening } from '../screening/contract.ts'
import { Usage } from '../usage/contract.ts'
import { Servers, Settings } from './config.ts'
import { McpServerChanged, McpServers } from './contract.ts'
import type { DecideRights } from './contract.ts'
import { hasServers } from './store.ts'
import { migrations } from './migrations.ts'
import { isPublic, originOf } from './oauth/origin.ts'
import { oauthRoutes } from './oauth/routes.ts'
import { mcpRoutes } from './routes.ts'
import type { Runtime, RuntimeDeps } from './runtime.ts'
import type { ServerRegistry } from './servers/server-registry.ts'

const IDLE_CHECK_MS = 5000
const requires = { audit: Audit, broadcast: Broadcast, cluster: Cluster, daemon: Daemon }
/** What requests of servers are answered with. */
const asked = {
  agents: Agents,
  approvals: Approvals,
  inference: Inference,
  screening: Screening,
  usage: Usage,
  workspaces: Workspaces,
}
type Context = PluginContext<Settings, typeof requires, typeof asked>

export default definePlugin({
  name: 'mcp',
  version: '1.0.0',
  config: Settings,
  sections: { mcp_servers: Servers },
  outbound: 'both',
  hooks: [McpServerChanged],
  requires,
  optional: asked,
  provides: { servers: McpServers },
  migrations,
  pages: [
    {
      path: 'mcp',
      title: 'MCP servers',
      group: 'Connections',
      file: 'pages/mcp.html',
      assets: ['mcp.css', 'mcp.js', 'server-card.js', 'add-dialog.js'],
    },
  ],
  setup(ctx) {
    const { config, db, hooks, jobs, log, metrics, own, routes, run } = ctx
    let { mcp_servers: entries, ...settings } = config
    const tell = followChanges({ broadcast: ctx.services.broadcast, own }, 'mcp.servers', () => follow())
    const decisions = new Map<string, DecideRights>()
    const deps = { ...runtimeDeps(ctx, settings, () => tell('')), decisions }
    let opened: ServerRegistry | undefined
    let opening: Promise<Runtime> | undefined
    const open = async (): Promise<Runtime> => {
      const { createRuntime } = await import('./runtime.ts')
      const runtime = await createRuntime(deps, entries)
      opened = runtime.registry
      return runtime
    }
    const runtime = (): Promise<Runtime> => (opening ??= open())
    const registry = async (): Promise<ServerRegistry> => (await runtime()).registry
    const follow = (): void => {
      run(async () => {
        if (opening || (await hasServers(db))) await (await registry()).sync()
      }).catch((error: unknown) => log.error('what another daemon changed of the MCP servers was not done', error))
    }
    hooks.on(MemberEnded, async () => opened?.undoAbandoned())
    own('servers', async () => (await opening)?.registry.end())
    observe(metrics, () => opened?.servers ?? [])
    hooks.on(AssignablesListed, async (asked) => {
      if (asked.kind !== 'mcp_servers' || !(entries.length > 0 || (await hasServers(db)))) return asked
      return { ...asked, names: [...asked.names, ...(await registry()).servers.map(({ name }) => name)] }
    })
    routes.add(
      ...mcpRoutes(registry),
      ...oauthRoutes({
        logins: async () => (await runtime()).logins,
        isPublic: () => isPublic(settings),
        origin: deps.origin,
      }),
    )
    jobs.every('idle', IDLE_CHECK_MS, async () => opened?.stopIdle())
    ctx.onConfigChange(async ({ mcp_servers: next, ...limits }) => {
      if (JSON.stringify(limits) !== JSON.stringify(settings)) return false
      entries = next
      await (await opening)?.registry.replaceFile(next)
      if (!opening && next.length > 0) await registry()
      return true
    })
    run(async () => {
      if (entries.length > 0 || (await hasServers(db))) await registry()
    }).catch((error: unknown) => log.error('the MCP servers could not be started', error))
    return { servers: servedBy(registry, decisions) }
  },
})

function servedBy(registry: () => Promise<ServerRegistry>, decisions: Map<string, DecideRights>): McpServers {
  return {
    list: async () => (await registry()).list(),
    find: async (name) => (await registry()).find(name),
    add: async (spec) => (await registry()).add(spec),
    update: async (name, spec) => (await registry()).update(name, spec),
    remove: async (name) => (await registry()).remove(name),
    reconnect: async (name) => (await registry()).reconnect(name),
    decideRights(kind, decide) {
      decisions.set(kind, decide)
      return () => void decisions.delete(kind)
    },
    test: async (spec) => (await registry()).test(spec),
    featureTool: async (name, feature) => (await registry()).featureTool(name, feature),
    client: async (name) => (await registry()).client(name),
  }
}

function observe(metrics: Metrics, servers: () => ServerRegistry['servers']): void {
  metrics.observed('svc_mcp_servers', 'MCP servers, by state.', () =>
    Object.entries(Object.groupBy(servers(), ({ state }) => state)).map(([state, list]) => ({
      value: list.length,
      labels: { state },
    })),
  )
}

function runtimeDeps(
  ctx: Context,
  settings: Settings,
  tellChanged: RuntimeDeps['tellChanged'],
): Omit<RuntimeDeps, 'decisions'> {
  const { hooks, metrics, services } = ctx
  const calls = metrics.counter('svc_mcp_calls_total', 'Calls of tools of MCP servers, by server and outcome.')
  const restarts = metrics.counter('svc_mcp_restarts_total', 'Restarts of MCP servers that ended.')
  let listening: string | undefined
  hooks.on(DaemonListening, ({ url }) => {
    listening = url
  })
  return {
    ...ctx,
    ...services,
    settings,
    tellChanged,
    origin: () => originOf(settings, listening, services.daemon.config().listenAddr),
    counted: (server, outcome) => calls.add(1, { server, outcome }),
    restarted: (server) => restarts.add(1, { server }),
  }
}
