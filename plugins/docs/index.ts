import * as v from 'valibot'
import { Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { guidePage, referencePage } from './pages.ts'
import { docsRoutes } from './routes.ts'

export default definePlugin({
  name: 'docs',
  version: '1.0.0',
  config: v.object({}),
  requires: { daemon: Daemon },
  pages: [referencePage, guidePage],
  setup({ routes, services }) {
    routes.add(...docsRoutes(services.daemon))
    return {}
  },
})
