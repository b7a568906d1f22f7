import * as v from 'valibot'
import { Daemon } from 'svc/internal'
import { definePlugin, fileOnly } from 'svc/sdk'
import type { Page } from './assets.ts'
import { pluginPageRoutes } from './plugin-pages.ts'
import { pageRoutes } from './routes.ts'

export default definePlugin({
  name: 'webchat',
  version: '1.0.0',
  config: v.object({
    page_dir: v.optional(
      fileOnly(
        'says whose page gets the key',
        v.pipe(
          v.string(),
          v.minLength(1),
          v.description('Folder of a built page that is served instead of the included one.'),
        ),
      ),
    ),
  }),
  requires: { daemon: Daemon },
  setup({ config, routes, services }) {
    // Nothing is read here: the page costs no start time until someone opens it.
    let page: Promise<Page> | undefined
    const openPage = (): Promise<Page> =>
      (page ??= import('./assets.ts').then(
        ({ findPage, Page }) => new Page(() => config.page_dir ?? findPage(import.meta.url)),
      ))
    routes.add(...pageRoutes(openPage), ...pluginPageRoutes(services.daemon))
    return {}
  },
})
