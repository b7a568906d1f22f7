import * as v from 'valibot'
import { defineRoute, Refusal, reply } from 'svc/sdk'
import type { AnyRoute, Reply, RequestFacts } from 'svc/sdk'
import type { Page } from './assets.ts'

const unbuilt = `The chat page has not been built yet.

Run  npm run build  in the folder of svc and load this page again; the daemon need not be restarted.
The API under /api works without the page.
`

/** The page and its files carry no data, so they are served before a key is given. */
export function pageRoutes(openPage: () => Promise<Page>): readonly AnyRoute[] {
  const find = finderOf(openPage)
  const home = defineRoute({
    method: 'GET',
    path: '/',
    summary: 'The chat page',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    produces: 'text/html',
    answers: { ...unchanged, 503: { description: 'The page is being built', type: 'text/plain' } },
    async handle(request) {
      const found = await find('/', 'no-cache', request)
      if (found) return found
      return reply(
        unbuilt,
        { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', 'retry-after': '10' },
        503,
      )
    },
  })
  const file = defineRoute({
    method: 'GET',
    path: '/assets/**:file',
    summary: 'A file of the chat page',
    auth: 'public',
    effect: 'read',
    cost: 1,
    params: v.object({ file: v.string() }),
    returns: v.unknown(),
    produces: '*/*',
    answers: unchanged,
    errors: ['not_found'],
    async handle(request) {
      const { file: name } = request.params
      // The name holds a hash of the content.
      const found = await find(`/assets/${name}`, 'public, max-age=31536000, immutable', request)
      if (!found) throw new Refusal('not_found', `The chat page has no file ${name}`)
      return found
    },
  })
  const icon = defineRoute({
    method: 'GET',
    path: '/favicon.svg',
    summary: 'The icon of the chat page',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    produces: 'image/svg+xml',
    answers: unchanged,
    errors: ['not_found'],
    async handle(request) {
      const found = await find('/favicon.svg', 'public, max-age=86400', request)
      if (!found) throw new Refusal('not_found', 'The chat page has no icon')
      return found
    },
  })
  return [home, file, icon]
}

const unchanged = { 304: { description: 'It is what If-None-Match names' } }

/** Finds a file of the page; `undefined` if the build made none. */
function finderOf(openPage: () => Promise<Page>) {
  return async (path: string, caching: string, request: RequestFacts): Promise<Reply | undefined> => {
    const page = await openPage()
    const asset = await page.find(path)
    if (!asset) return undefined
    return (await import('./serve-page.ts')).servePage(page, asset, caching, request)
  }
}
