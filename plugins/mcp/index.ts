import { Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AssignablesListed } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Servers, Settings } from './config.ts'
import { McpServerChanged, McpServers } from './contract.ts'
import { migrations } from './migrations.ts'
import { mcpRoutes } from './routes.ts'
import type { ServerRegistry } from './servers/server-registry.ts'
import { hasServers } from './store.ts'

const IDLE_CHECK_MS = 5000

export default definePlugin({
  name: 'mcp',
  version: '1.0.0',
  config: Settings,
  sections: { mcp_servers: Servers },
  outbound: 'both',
  hooks: [McpServerChanged],
  requires: { audit: Audit, daemon: Daemon },
  provides: { servers: McpServers },
  migrations,
  setup(ctx) {
    const { config, db, hooks, jobs, log, metrics, own, routes, run, services } = ctx
    let { mcp_servers: entries, ...settings } = config
    const calls = metrics.counter('svc_mcp_calls_total', 'Calls of tools of MCP servers, by server and outcome.')
    const restarts = metrics.counter('svc_mcp_restarts_total', 'Restarts of MCP servers that ended.')
    let opened: ServerRegistry | undefined
    let opening: Promise<ServerRegistry> | undefined
    const open = async (): Promise<ServerRegistry> => {
      const { createRuntime } = await import('./runtime.ts')
      return (opened = await createRuntime(
        {
          ...ctx,
          ...services,
          settings,
          counted: (server, outcome) => calls.add(1, { server, outcome }),
          restarted: (server) => restarts.add(1, { server }),
        },
        entries,
      ))
    }
    const registry = (): Promise<ServerRegistry> => (opening ??= open())
    own('servers', async () => (await opening)?.end())
    metrics.observed('svc_mcp_servers', 'MCP servers, by state.', () =>
      Object.entries(Object.groupBy(opened?.servers ?? [], ({ state }) => state)).map(([state, list]) => ({
        value: list.length,
        labels: { state },
      })),
    )
    hooks.on(AssignablesListed, async (asked) => {
      if (asked.kind !== 'mcp_servers' || !(entries.length > 0 || (await hasServers(db)))) return asked
      return { ...asked, names: [...asked.names, ...(await registry()).servers.map(({ name }) => name)] }
    })
    routes.add(...mcpRoutes(registry))
    jobs.every('idle', IDLE_CHECK_MS, async () => opened?.stopIdle())
    ctx.onConfigChange(async ({ mcp_servers: next, ...limits }) => {
      if (JSON.stringify(limits) !== JSON.stringify(settings)) return false
      entries = next
      await (await opening)?.replaceFile(next)
      if (!opening && next.length > 0) await registry()
      return true
    })
    run(async () => {
      if (entries.length > 0 || (await hasServers(db))) await registry()
    }).catch((error: unknown) => log.error('the MCP servers could not be started', error))
    return {
      servers: {
        list: async () => (await registry()).list(),
        find: async (name) => (await registry()).find(name),
        add: async (spec) => (await registry()).add(spec),
        update: async (name, spec) => (await registry()).update(name, spec),
        remove: async (name) => (await registry()).remove(name),
        reconnect: async (name) => (await registry()).reconnect(name),
        test: async (spec) => (await registry()).test(spec),
        client: async (name) => (await registry()).client(name),
      },
    }
  },
})
