import * as v from 'valibot'
import { matchesEtag } from 'svc/internal'
import { defineRoute, Refusal, reply } from 'svc/sdk'
import type { AnyRoute, Reply, RequestFacts } from 'svc/sdk'
import type { Asset, Encoding, Page } from './assets.ts'

const unbuilt = `The chat page has not been built yet.

Run  npm run build  in the folder of svc and load this page again; the daemon need not be restarted.
The API under /api works without the page.
`

/** The page and its files carry no data, so they are served before a key is given. */
export function pageRoutes(page: Page): readonly AnyRoute[] {
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
      const asset = await page.find('/')
      if (!asset)
        return reply(
          unbuilt,
          { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', 'retry-after': '10' },
          503,
        )
      return serve(page, asset, 'no-cache', request)
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
      const asset = await page.find(`/assets/${request.params.file}`)
      if (!asset) throw new Refusal('not_found', `The chat page has no file ${request.params.file}`)
      // The name holds a hash of the content.
      return serve(page, asset, 'public, max-age=31536000, immutable', request)
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
      const asset = await page.find('/favicon.svg')
      if (!asset) throw new Refusal('not_found', 'The chat page has no icon')
      return serve(page, asset, 'public, max-age=86400', request)
    },
  })
  return [home, file, icon]
}

const unchanged = { 304: { description: 'It is what If-None-Match names' } }

async function serve(page: Page, asset: Asset, caching: string, request: RequestFacts): Promise<Reply> {
  const encoding = chooseEncoding(request.header('accept-encoding'), asset)
  // Each encoding is its own sequence of bytes, hence its own strong validator (RFC 9110, 8.8.3.3).
  const etag = encoding ? asset.etag.replace(/"$/, `-${encoding}"`) : asset.etag
  const headers = { 'cache-control': caching, etag, vary: 'accept-encoding' }
  if (matchesEtag(request.header('if-none-match'), etag)) return reply(null, headers, 304)
  const body = await page.bytes(asset, encoding)
  return reply(body, { ...headers, 'content-type': asset.type, ...(encoding ? { 'content-encoding': encoding } : {}) })
}

/** The smallest stored form that the client accepts: named, or matched by `*`, and not weighted 0. */
export function chooseEncoding(header: string | undefined, asset: Pick<Asset, 'encodings'>): Encoding | undefined {
  const weights = new Map<string, number>()
  for (const part of (header ?? '').split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const weight = parameters.find((text) => text.startsWith('q='))
    if (name !== '') weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)) || 0)
  }
  for (const encoding of ['br', 'gzip'] as const) {
    if (asset.encodings[encoding] !== undefined && (weights.get(encoding) ?? weights.get('*') ?? 0) > 0) return encoding
  }
  return undefined
}
