import * as v from 'valibot'
import { Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { docsRoutes } from './routes.ts'

export default definePlugin({
  name: 'docs',
  version: '1.0.0',
  config: v.object({}),
  requires: { daemon: Daemon },
  pages: [
    {
      path: 'api',
      title: 'API reference',
      group: 'Operations',
      file: 'pages/api.html',
      url: '/docs',
      assets: ['api.js', 'api.css', 'code.css', 'copy.js', 'operation.js', 'request.js', 'schema.js', 'try.js'],
    },
    {
      path: 'guide',
      title: 'Guide',
      group: 'Operations',
      file: 'pages/guide.html',
      url: '/docs/guide',
      assets: ['guide.js', 'guide.css', 'code.css', 'copy.js'],
    },
  ],
  setup({ routes, services }) {
    routes.add(...docsRoutes(services.daemon))
    return {}
  },
})
