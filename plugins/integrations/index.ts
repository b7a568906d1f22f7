import { Daemon, pluginsLoaded } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { Cluster, MemberEnded } from '../cluster/contract.ts'
import { McpServerChanged, McpServers } from '../mcp/contract.ts'
import { Extensions, Settings } from './config.ts'
import { IntegrationChanged, Integrations } from './contract.ts'
import { migrations } from './migrations.ts'
import { integrationRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { hasInstalled } from './store.ts'

export default definePlugin({
  name: 'integrations',
  version: '1.0.0',
  config: Settings,
  sections: { extensions: Extensions },
  requires: { audit: Audit, cluster: Cluster, daemon: Daemon, servers: McpServers },
  provides: { integrations: Integrations },
  hooks: [IntegrationChanged],
  migrations,
  pages: [
    {
      path: 'integrations',
      title: 'Integrations',
      group: 'Connections',
      file: 'pages/integrations.html',
      assets: ['add-dialog.js', 'integration-card.js', 'integrations.css', 'integrations.js'],
    },
  ],
  setup({ config, db, hooks, jobs, leaving, log, metrics, own, routes, run, services, spawn }) {
    const checks = metrics.counter('svc_integration_checks_total', 'Health checks of integrations, by outcome.')
    const reconnects = metrics.counter(
      'svc_integration_reconnects_total',
      'Attempts to connect an integration again that does not work, by outcome.',
    )
    const said = 'Integrations that stopped working, or work again, by change.'
    const alerts = metrics.counter('svc_integration_alerts_total', said)
    const open = async (): Promise<Runtime> => {
      const { createRuntime } = await import('./runtime.ts')
      return createRuntime({
        ...services,
        settings: config,
        homeDir: services.daemon.config().homeDir,
        db,
        hooks,
        log,
        hasProgram: (name) => spawn.has(name),
        checks,
        reconnects,
        alerts,
      })
    }
    let opened: Promise<Runtime> | undefined
    const runtime = (): Promise<Runtime> => (opened ??= open())
    const background = (work: () => Promise<void>): void => {
      run(work).catch((error: unknown) => log.error('work for integrations failed', error))
    }

    own(
      'rights',
      services.servers.decideRights('integration', async (asked) => (await runtime()).service.rightsOf(asked)),
    )
    routes.add(...integrationRoutes(runtime))
    jobs.every('health', config.extensions.health_check_interval_secs * 1000, async () => {
      if (!(await hasInstalled(db))) return
      const { service, monitor } = await runtime()
      await monitor.check(await service.checked())
    })
    // In the background: whoever removes a server waits for its listeners, and may be this plugin.
    hooks.on(McpServerChanged, ({ name, state }) => {
      if (state !== 'removed') return
      background(async () => {
        if (await hasInstalled(db)) await (await runtime()).service.serverRemoved(name)
      })
    })
    const recover = async (): Promise<void> => {
      await pluginsLoaded(services.daemon, 'integrations', leaving)
      if (leaving.aborted || !(await hasInstalled(db))) return
      await (await runtime()).service.recover()
    }
    background(recover)
    hooks.on(MemberEnded, () => background(recover))
    return {
      integrations: {
        entries: async () => (await runtime()).provided.entries(),
        entry: async (id) => (await runtime()).provided.entry(id),
        add: async (request) => (await runtime()).provided.add(request),
        remove: async (id) => (await runtime()).provided.remove(id),
      },
    }
  },
})
