import { Refusal, UpstreamFailure } from '../errors/error.ts'

/** What a request is, as it changes from hop to hop. */
export interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

export interface Redirects {
  readonly followed: number
  readonly max: number
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** All that may follow to another origin. A list of what is secret would never be complete. */
const HARMLESS = new Set(['accept', 'accept-language', 'accept-encoding', 'content-type', 'range', 'user-agent'])

/** The request a redirect asks for, or `undefined` when the answer is none. */
export function follow(hop: Hop, status: number, location: string | undefined): Hop | undefined {
  if (!REDIRECTS.has(status) || location === undefined) return undefined
  if (!URL.canParse(location, hop.url))
    throw new UpstreamFailure(hop.url.hostname, `${hop.url.origin} redirected to something that is no address`, {
      reason: 'malformed',
      retry: 'never',
    })
  const url = new URL(location, hop.url)
  if (hop.url.protocol === 'https:' && url.protocol === 'http:')
    throw new Refusal('forbidden', `${hop.url.origin} redirected from https to http, which is refused`)
  const becomesGet = status === 303 ? hop.method !== 'HEAD' : status < 303 && hop.method === 'POST'
  let headers = Object.entries(hop.headers)
  if (url.origin !== hop.url.origin) headers = headers.filter(([name]) => HARMLESS.has(name.toLowerCase()))
  if (becomesGet) headers = headers.filter(([name]) => !/^content-/i.test(name))
  return {
    url,
    method: becomesGet ? 'GET' : hop.method,
    headers: Object.fromEntries(headers),
    body: becomesGet ? undefined : hop.body,
  }
}
