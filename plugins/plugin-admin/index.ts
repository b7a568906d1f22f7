import * as v from 'valibot'
import { Configuration, Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { listRoutes } from './list-routes.ts'

export default definePlugin({
  name: 'plugin-admin',
  version: '1.0.0',
  config: v.object({}),
  requires: { audit: Audit, daemon: Daemon, configuration: Configuration },
  setup({ log, routes, services }) {
    routes.add(...listRoutes({ self: 'plugin-admin', log, ...services }))
    return {}
  },
})
