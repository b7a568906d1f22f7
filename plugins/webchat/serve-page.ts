import { matchesEtag } from 'svc/internal'
import { reply } from 'svc/sdk'
import type { Reply, RequestFacts } from 'svc/sdk'
import type { Asset, Encoding, Page } from './assets.ts'

/** A file of the built page, as the client wants it. */
export async function servePage(page: Page, asset: Asset, caching: string, request: RequestFacts): Promise<Reply> {
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
