import * as v from 'valibot'
import { openConfined } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import { defineRoute, Refusal, reply } from 'svc/sdk'
import type { AnyRoute, PageDeclaration, Reply } from 'svc/sdk'

/** A larger file is not read into memory. */
const MAX_BYTES = 16_777_216

const PageList = v.object({
  pages: v.array(v.object({ plugin: v.string(), title: v.string(), url: v.string() })),
})

/** What pages share, in `pages/kit`. */
const KIT: ReadonlySet<string> = new Set([
  'api.js',
  'colors.css',
  'dialogs.js',
  'elements.js',
  'key-entry.js',
  'kit.css',
  'kit.js',
  'live.js',
  'navigation.js',
])

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
      returns: { pages: [{ plugin: 'hello', title: 'Greetings', url: '/pages/hello/greetings/index.html' }] },
    },
    handle() {
      const pages = daemon.plugins().flatMap(({ name, pages }) =>
        pages.map((page) => ({
          plugin: name,
          title: page.title,
          url: `/pages/${name}/${page.path}/${fileName(page)}`,
        })),
      )
      return { pages }
    },
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
    async handle({ params }) {
      const plugin = daemon.plugins().find(({ name }) => name === params.plugin)
      const page = plugin?.pages.find(({ path }) => path === params.page)
      if (!plugin || !page || (params.file !== fileName(page) && page.assets?.includes(params.file) !== true))
        throw new Refusal('not_found', `No plugin declares a page with the file ${params.file}`)
      return serve(plugin.folder, page.file.slice(0, -fileName(page).length) + params.file)
    },
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
    async handle({ params: { file } }) {
      const own = daemon.plugins().find(({ name }) => name === 'webchat')
      if (!own || !KIT.has(file))
        throw new Refusal('not_found', `Pages share no file ${file}: there are ${[...KIT].join(', ')}`)
      return serve(own.folder, `pages/kit/${file}`)
    },
  })
}

function fileName({ file }: PageDeclaration): string {
  return file.slice(file.lastIndexOf('/') + 1)
}

async function serve(folder: string, name: string): Promise<Reply> {
  const { default: mime } = await import('mime')
  const handle = await openConfined(folder, name, 'read').catch((cause: unknown) => {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')) throw cause
    throw new Refusal('not_found', `The plugin declares the file ${name}, and it does not exist`, { cause })
  })
  try {
    const { size } = await handle.stat()
    if (size > MAX_BYTES) throw new Refusal('not_found', `${name} is larger than ${MAX_BYTES} bytes`)
    const type = mime.getType(name) ?? 'application/octet-stream'
    const charset = /^text\/|\/(?:javascript|json)$/.test(type) ? '; charset=utf-8' : ''
    return reply(await handle.readFile(), { 'content-type': `${type}${charset}`, 'cache-control': 'no-cache' })
  } finally {
    await handle.close()
  }
}
