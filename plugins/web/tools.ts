import * as v from 'valibot'
import { fence } from 'svc/internal'
import { defineTool } from 'svc/sdk'
import type { AnyTool, Fetch } from 'svc/sdk'
import type { Agents, Capability } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { SearchProvider } from './search.ts'

export interface WebLimits {
  readonly maxBytes: number
  readonly maxChars: number
  readonly timeoutSecs: number
  readonly maxResults: number
}
export interface WebToolsDeps {
  readonly agents: Agents
  readonly audit: Audit
  readonly fetch: Fetch
  readonly limits: WebLimits
  readonly provider: SearchProvider | undefined
  /** Hosts that recognise a repeated request by its `Idempotency-Key`. */
  readonly idempotentHosts: readonly string[]
}

/** Security facts 1.2: nothing secret goes out, and what comes in is not to be trusted. */
const guarded = { labels: ['ExternalNetwork'], refuses: ['Secret', 'Pii'] } as const
const Headers = v.pipe(
  v.record(
    v.pipe(v.string(), v.regex(/^[\w!#$%&'*+.^`|~-]{1,100}$/, 'Expected the name of a header')),
    v.pipe(v.string(), v.maxLength(4096), v.regex(/^[\t\x20-\x7e]*$/, 'Expected printable ASCII')),
  ),
  v.check((headers) => Object.keys(headers).length <= 50, 'At most 50 headers'),
)

const FetchInput = v.object({
  url: v.pipe(v.string(), v.maxLength(8192), v.url('Expected an address such as https://example.com')),
  method: v.optional(v.picklist(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']), 'GET'),
  headers: v.optional(Headers, {}),
  body: v.optional(v.pipe(v.string(), v.maxLength(1_048_576))),
})
export type FetchInput = v.InferOutput<typeof FetchInput>

export function webTools(deps: WebToolsDeps): readonly AnyTool[] {
  return deps.provider ? [fetchTool(deps), searchTool(deps, deps.provider)] : [fetchTool(deps)]
}

function fetchTool(deps: WebToolsDeps): AnyTool {
  return defineTool({
    ...guarded,
    name: 'web_fetch',
    risk: 'read',
    needs: 'network' satisfies Capability,
    timeoutSecs: deps.limits.timeoutSecs + 5,
    description:
      'Fetch an address of the web. Pages come as Markdown. ' +
      'Only hosts that the manifest of the agent allows; private addresses are refused.',
    input: FetchInput,
    assess({ url, method, headers, body }) {
      const { origin, host } = new URL(url)
      const intent = method === 'GET' ? `read a page of ${host}` : `send a ${method} request to ${host}`
      // What is sent along is another thing each time.
      return method === 'GET' && body === undefined && Object.keys(headers).length === 0
        ? {
            intent,
            standing: { key: `GET ${origin}`, covers: `any page of ${origin}, read without headers of its own` },
          }
        : { intent, harm: method === 'GET' ? 'medium' : 'high' }
    },
    run: async (input, call) => (await import('./request.ts')).fetchPage(deps, input, call),
    recover: async (input, call) => (await import('./request.ts')).recoverRequest(deps, input, call),
  })
}

/** Decision: the provider is the operator's choice, so a manifest that grants the tool need not name its host too. */
function searchTool({ audit, limits }: WebToolsDeps, provider: SearchProvider): AnyTool {
  return defineTool({
    ...guarded,
    name: 'web_search',
    risk: 'read',
    description: 'Search the web. Answers titles, addresses and excerpts; read a page with web_fetch.',
    input: v.object({
      query: v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(400)),
      max_results: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(20)), limits.maxResults),
    }),
    async run(input, { agentId, signal }) {
      await audit.write({ event: 'network_access', agentId, details: `search with ${provider.name}` })
      const found = (await provider.search(input.query, input.max_results, signal)).slice(0, input.max_results)
      if (found.length === 0) return `Nothing found for "${input.query}".`
      return fence(
        found
          .map(
            ({ title, url, text }, index) =>
              `${index + 1}. ${line(title)}\n   ${line(url)}\n   ${line(text).slice(0, 500)}`,
          )
          .join('\n'),
      )
    },
  })
}

const line = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
