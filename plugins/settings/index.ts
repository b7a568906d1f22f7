import * as v from 'valibot'
import { Broadcast, Configuration, Daemon, DatabaseSnapshots } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { ChannelAccounts } from '../channels/contract.ts'
import { Inference } from '../providers/contract.ts'
import { migrations } from './migrations.ts'
import { configRoutes } from './routes.ts'

export default definePlugin({
  name: 'settings',
  version: '1.0.0',
  config: v.object({}),
  requires: {
    audit: Audit,
    broadcast: Broadcast,
    configuration: Configuration,
    daemon: Daemon,
    snapshots: DatabaseSnapshots,
  },
  optional: { inference: Inference, channels: ChannelAccounts },
  migrations,
  pages: [
    {
      path: 'settings',
      title: 'Settings',
      group: 'Operations',
      file: 'pages/settings.html',
      assets: ['settings.js', 'settings.css'],
    },
  ],
  async setup(ctx) {
    const { optional, routes, services } = ctx
    const { audit, configuration, daemon } = services
    routes.add(
      ...configRoutes({
        configuration,
        daemon,
        audit,
        inference: () => optional('inference'),
        channels: () => optional('channels'),
      }),
    )
    if (services.broadcast.isShared) await (await import('./sharing.ts')).shareSettings({ ...ctx, ...services })
    return {}
  },
})
