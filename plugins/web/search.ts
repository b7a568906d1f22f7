import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { Fetch, OutboundRequest } from 'svc/sdk'

export interface SearchResult {
  readonly title: string
  readonly url: string
  readonly text: string
}
export interface SearchProvider {
  readonly name: string
  /** At most `limit` results, the best first. Throws `UpstreamFailure`. */
  search(query: string, limit: number, signal: AbortSignal): Promise<readonly SearchResult[]>
}
/** The current key. Read before each request and never cached. */
export type Key = () => Promise<string | undefined>

const text = v.optional(
  v.pipe(
    v.nullable(v.string()),
    v.transform((found) => found ?? ''),
  ),
  '',
)
const BraveAnswer = v.object({
  web: v.optional(v.object({ results: v.array(v.object({ title: text, url: v.string(), description: text })) })),
})
const Answer = v.object({ results: v.array(v.object({ title: text, url: v.string(), content: text })) })
const toResults = ({ results }: v.InferOutput<typeof Answer>): SearchResult[] =>
  results.map(({ title, url, content }) => ({ title, url, text: content }))

export function brave(fetch: Fetch, key: Key, base: string): SearchProvider {
  return {
    name: 'brave',
    async search(query, limit, signal) {
      const url = new URL('/res/v1/web/search', base)
      url.search = new URLSearchParams({
        q: query,
        count: String(Math.min(limit, 20)),
        text_decorations: 'false',
      }).toString()
      const { web } = await request(fetch, 'brave', BraveAnswer, url, {
        headers: { accept: 'application/json', 'x-subscription-token': await requireKey('brave', key) },
        signal,
      })
      return (web?.results ?? []).map((one) => ({ title: one.title, url: one.url, text: one.description }))
    },
  }
}
export function tavily(fetch: Fetch, key: Key, base: string): SearchProvider {
  return {
    name: 'tavily',
    async search(query, limit, signal) {
      return toResults(
        await request(fetch, 'tavily', Answer, new URL('/search', base), {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${await requireKey('tavily', key)}` },
          body: JSON.stringify({ query, max_results: Math.min(limit, 20), search_depth: 'basic' }),
          signal,
        }),
      )
    },
  }
}
/** A server of one's own. It must have the format `json` switched on. */
export function searxng(fetch: Fetch, base: string): SearchProvider {
  return {
    name: 'searxng',
    async search(query, _limit, signal) {
      const url = new URL('search', base.endsWith('/') ? base : `${base}/`)
      url.search = new URLSearchParams({ q: query, format: 'json' }).toString()
      return toResults(
        await request(fetch, 'searxng', Answer, url, { headers: { accept: 'application/json' }, signal }),
      )
    },
  }
}

async function requireKey(name: string, key: Key): Promise<string> {
  const found = await key()
  if (found === undefined)
    throw new UpstreamFailure(name, `${name} has no key any more`, { reason: 'auth', retry: 'never' })
  return found
}

async function request<S extends v.GenericSchema>(
  fetch: Fetch,
  name: string,
  schema: S,
  url: URL,
  options: OutboundRequest,
): Promise<v.InferOutput<S>> {
  const response = await fetch(url, { ...options, totalTimeoutMs: 15_000, maxBytes: 2_097_152 })
  if (!response.ok) {
    const { status } = response
    // The rest is not read: it may repeat the request.
    throw new UpstreamFailure(name, `${name} answered ${status}`, {
      reason: status === 401 || status === 403 ? 'auth' : status === 429 ? 'rate_limit' : 'server_error',
      retry: status === 429 || status >= 500 ? 'later' : 'never',
    })
  }
  const parsed = v.safeParse(schema, await response.json())
  if (!parsed.success)
    throw new UpstreamFailure(name, `${name} answered something else than results`, {
      reason: 'malformed',
      retry: 'never',
    })
  return parsed.output
}
