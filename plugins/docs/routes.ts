import * as v from 'valibot'
import type { Daemon } from 'svc/internal'
import { defineRoute, Refusal, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Guide } from './guide.ts'

const html = { 'content-type': 'text/html; charset=utf-8' }

/**
 * Decision: these pages are public, as the chat page is. They hold nothing of this daemon; the API reference asks for its
 * data with the key.
 */
export function docsRoutes(daemon: Pick<Daemon, 'plugins'>): readonly AnyRoute[] {
  const folder = (): string => {
    const own = daemon.plugins().find(({ name }) => name === 'docs')
    if (!own) throw new Refusal('service_unavailable', 'The plugin docs is being loaded')
    return own.folder
  }
  const openGuide = async (): Promise<Guide> => (await import('./guide.ts')).openGuide(folder())

  const reference = defineRoute({
    method: 'GET',
    path: '/docs',
    summary: 'The API reference, a page to read and to try the routes on',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    produces: 'text/html',
    handle: async () => reply(await (await import('./reference.ts')).drawReference(folder()), html),
  })
  const home = defineRoute({
    method: 'GET',
    path: '/docs/guide',
    summary: 'The first page of the guide, or what is found in it',
    auth: 'public',
    effect: 'read',
    cost: 5,
    query: v.object({ q: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('Words to search for'))) }),
    returns: v.unknown(),
    produces: 'text/html',
    errors: ['not_found'],
    async handle({ query: { q = '' } }) {
      const guide = await openGuide()
      return reply(q.trim() === '' ? await guide.home() : await guide.search(q), html)
    },
  })
  const page = defineRoute({
    method: 'GET',
    path: '/docs/guide/**:page',
    summary: 'A page of the guide',
    auth: 'public',
    effect: 'read',
    cost: 5,
    params: v.object({ page: v.string() }),
    returns: v.unknown(),
    produces: 'text/html',
    answers: { 404: { description: 'The guide has no such page', type: 'text/html' } },
    errors: ['not_found'],
    async handle({ params, header }) {
      const guide = await openGuide()
      const found = await guide.page(params.page)
      if (found !== undefined) return reply(found, html)
      // A person gets a page, and a program an error.
      if (header('accept')?.includes('text/html')) return reply(await guide.missing(params.page), html, 404)
      throw new Refusal('not_found', `The guide has no page ${params.page}: GET /docs/guide lists them`)
    },
  })
  return [reference, home, page]
}
