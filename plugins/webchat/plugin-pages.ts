import * as v from 'valibot'
import type { Daemon } from 'svc/internal'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'

const PageList = v.object({
  pages: v.array(v.object({ plugin: v.string(), title: v.string(), group: v.string(), url: v.string() })),
})

const PageView = v.object({
  plugin: v.string(),
  title: v.string(),
  /** Of a plugin that runs in a process of its own: what the page shows in a frame. */
  frame_url: v.nullable(v.string()),
  /** Of a page without HTML. */
  table: v.nullable(
    v.object({
      route: v.string(),
      rows: v.optional(v.string()),
      columns: v.array(v.object({ field: v.string(), title: v.string() })),
      empty: v.optional(v.string()),
    }),
  ),
  actions: v.array(
    v.object({
      title: v.string(),
      method: v.string(),
      route: v.string(),
      fields: v.array(v.object({ name: v.string(), title: v.string(), required: v.optional(v.boolean()) })),
      dangerous: v.boolean(),
    }),
  ),
})
const PageParams = v.object({ plugin: v.string(), page: v.string() })
const FileParams = v.object({ ...PageParams.entries, file: v.string() })
const KitParams = v.object({ file: v.string() })
/** Anybody may read these files: they hold no data. */
const file = {
  method: 'GET',
  auth: 'public',
  effect: 'read',
  cost: 1,
  returns: v.unknown(),
  produces: '*/*',
  errors: ['not_found'],
} as const

/** The pages that plugins declare: a list for the navigation, their files, and what they share. */
export function pluginPageRoutes(daemon: Pick<Daemon, 'plugins'>): readonly AnyRoute[] {
  return [listRoute(daemon), pageRoute(daemon), ...fileRoutes(daemon), ...frameRoutes(daemon)]
}

function listRoute(daemon: Pick<Daemon, 'plugins'>): AnyRoute {
  return defineRoute({
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
}

function pageRoute(daemon: Pick<Daemon, 'plugins'>): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/pages/:plugin/:page',
    summary: 'What a page of a plugin shows',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    params: PageParams,
    returns: PageView,
    errors: ['not_found'],
    example: {
      returns: {
        plugin: 'hello',
        title: 'Greetings',
        frame_url: '/frames/hello/greetings/index.html',
        table: null,
        actions: [],
      },
    },
    handle: async ({ params }) => (await import('./page-files.ts')).describePage(daemon.plugins(), params),
  })
}

function fileRoutes(daemon: Pick<Daemon, 'plugins'>): readonly AnyRoute[] {
  return [
    defineRoute({
      ...file,
      path: '/pages/kit/:file',
      summary: 'A file that the pages of plugins share',
      params: KitParams,
      handle: async ({ params }) => (await import('./page-files.ts')).kitFile(daemon.plugins(), params.file),
    }),
    defineRoute({
      ...file,
      path: '/pages/:plugin/:page/**:file',
      summary: 'A file of the page of a plugin',
      params: FileParams,
      handle: async ({ params }) => (await import('./page-files.ts')).pageFile(daemon.plugins(), params),
    }),
  ]
}

/** A document in a sandbox has no origin, so its requests for its own files come from another site. */
function frameRoutes(daemon: Pick<Daemon, 'plugins'>): readonly AnyRoute[] {
  return [
    defineRoute({
      ...file,
      crossSite: true,
      path: '/frames/kit/:file',
      summary: 'A file that the pages of plugins share, for one in a frame',
      params: KitParams,
      handle: async ({ params }) => (await import('./page-files.ts')).kitFileInFrame(daemon.plugins(), params.file),
    }),
    defineRoute({
      ...file,
      crossSite: true,
      path: '/frames/:plugin/:page/**:file',
      summary: 'A file of the page of a plugin that runs in a process of its own, for the frame it is shown in',
      params: FileParams,
      handle: async ({ params }) => (await import('./page-files.ts')).fileInFrame(daemon.plugins(), params),
    }),
  ]
}
