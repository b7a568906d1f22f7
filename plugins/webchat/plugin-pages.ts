import * as v from 'valibot'
import type { Daemon } from 'svc/internal'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'

const PageList = v.object({
  pages: v.array(v.object({ plugin: v.string(), title: v.string(), group: v.string(), url: v.string() })),
})

/** The pages that plugins declare: a list for the navigation, their files, and what they share. */
export function pluginPageRoutes(daemon: Pick<Daemon, 'plugins'>): readonly AnyRoute[] {
  const list = defineRoute({
    method: 'GET',
    path: '/api/pages',
    summary: 'The pages of plugins',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    returns: PageList,
    example: {
      returns: {
        pages: [{ plugin: 'hello', title: 'Greetings', group: 'More', url: '/pages/hello/greetings/index.html' }],
      },
    },
    handle: async () => ({ pages: (await import('./page-files.ts')).listPages(daemon.plugins()) }),
  })
  const file = defineRoute({
    method: 'GET',
    path: '/pages/:plugin/:page/**:file',
    summary: 'A file of the page of a plugin',
    auth: 'public',
    effect: 'read',
    cost: 1,
    params: v.object({ plugin: v.string(), page: v.string(), file: v.string() }),
    returns: v.unknown(),
    produces: '*/*',
    errors: ['not_found'],
    handle: async ({ params }) => (await import('./page-files.ts')).pageFile(daemon.plugins(), params),
  })
  return [list, kitRoute(daemon), file]
}

function kitRoute(daemon: Pick<Daemon, 'plugins'>): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/pages/kit/:file',
    summary: 'A file that the pages of plugins share',
    auth: 'public',
    effect: 'read',
    cost: 1,
    params: v.object({ file: v.string() }),
    returns: v.unknown(),
    produces: '*/*',
    errors: ['not_found'],
    handle: async ({ params }) => (await import('./page-files.ts')).kitFile(daemon.plugins(), params.file),
  })
}
