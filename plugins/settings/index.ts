import * as v from 'valibot'
import { Configuration, Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { ChannelAccounts } from '../channels/contract.ts'
import { Inference } from '../providers/contract.ts'
import { configRoutes } from './routes.ts'

export default definePlugin({
  name: 'settings',
  version: '1.0.0',
  config: v.object({}),
  requires: { audit: Audit, configuration: Configuration, daemon: Daemon },
  optional: { inference: Inference, channels: ChannelAccounts },
  setup({ optional, routes, services: { audit, configuration, daemon } }) {
    routes.add(
      ...configRoutes({
        configuration,
        daemon,
        audit,
        inference: () => optional('inference'),
        channels: () => optional('channels'),
      }),
    )
    return {}
  },
})
