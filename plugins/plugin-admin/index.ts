import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  AcceptedPermissions,
  Broadcast,
  Configuration,
  Daemon,
  DaemonListening,
  DatabaseSnapshots,
  homeId,
  PluginDataService,
} from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { Cluster } from '../cluster/contract.ts'
import { Integrations } from '../integrations/contract.ts'
import type { PluginCatalog } from './catalog.ts'
import { extensionRoutes } from './extension-routes.ts'
import { installRoutes } from './install-routes.ts'
import type { Installer } from './install/service.ts'
import { listRoutes } from './list-routes.ts'
import { migrations } from './migrations.ts'
import { Settings } from './settings.ts'
import type { PluginSharing } from './sharing/sharing.ts'
import type { InstallStore } from './store.ts'

export default definePlugin({
  name: 'plugin-admin',
  version: '1.0.0',
  config: Settings,
  requires: {
    audit: Audit,
    daemon: Daemon,
    configuration: Configuration,
    accepted: AcceptedPermissions,
    pluginData: PluginDataService,
    broadcast: Broadcast,
    snapshots: DatabaseSnapshots,
  },
  optional: { integrations: Integrations, cluster: Cluster },
  migrations,
  pages: [
    {
      path: 'plugins',
      title: 'Plugins',
      group: 'Operations',
      file: 'pages/plugins.html',
      assets: ['plugins.css', 'plugins.js', 'install.js', 'plugin-card.js', 'plugin-dialogs.js'],
    },
  ],
  async setup(ctx) {
    const { config: settings, db, fetch, hooks, log, optional, routes, run, services } = ctx
    const { broadcast, daemon } = services
    const integrations = () => optional('integrations')
    const plugins = join(daemon.config().homeDir, 'plugins')
    const home = broadcast.isShared ? homeId(daemon.config()) : ''
    const openStore = async (): Promise<InstallStore> => new (await import('./store.ts')).InstallStore(db, home, log)
    let opened: Promise<Installer> | undefined
    const installer = (): Promise<Installer> =>
      (opened ??= Promise.all([import('./install/service.ts'), openStore()]).then(
        ([{ Installer }, store]) => new Installer({ plugins, store, settings, fetch, log, sharing, ...services }),
      ))
    let shared: Promise<PluginSharing> | undefined
    const sharing = async (): Promise<PluginSharing | undefined> => {
      const cluster = broadcast.isShared ? optional('cluster') : undefined
      if (!cluster) return undefined
      return await (shared ??= import('./sharing/open.ts').then(({ openSharing }) =>
        openSharing({ ...services, cluster, db, settings, plugins, home, installer, log }),
      ))
    }
    const catalog = async (): Promise<PluginCatalog> => {
      const { PluginCatalog } = await import('./catalog.ts')
      return new PluginCatalog({ self: 'plugin-admin', log, store: await openStore(), integrations, ...services })
    }
    routes.add(
      ...listRoutes(catalog, sharing),
      ...installRoutes(installer),
      ...extensionRoutes({ catalog, installer, integrations }),
    )
    const listening = async (): Promise<void> => {
      const names = await readdir(plugins).catch(() => [] /* no plugin was ever installed */)
      if (names.length === 0) return
      const unfinished = await (await openStore()).unfinished()
      if (names.some((name) => name.startsWith('.')) || unfinished.length > 0) await (await installer()).recover()
    }
    if (broadcast.isShared) (await import('./sharing/follow.ts')).followOthers(ctx, sharing)
    hooks.on(DaemonListening, () => run(listening))
    return {}
  },
})
