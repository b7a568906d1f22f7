import * as v from 'valibot'
import { definePlugin, fields, fileOnly, secret, settable } from 'svc/sdk'
import type { Fetch, Vault } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import type { Key, SearchProvider } from './search.ts'
import { webTools } from './tools.ts'

/** Only the operator decides where a key is sent. */
const url = (description: string) =>
  fileOnly('says where keys of searches are sent', v.pipe(v.string(), v.url(), v.description(description)))
const key = (description: string) => v.optional(secret(v.pipe(v.string(), v.minLength(1), v.description(description))))
const Config = settable(
  'says how much of the web is read, and with whose key',
  v.object({
    max_response_bytes: fields.integer(
      'Largest answer that web_fetch reads, in bytes.',
      10_485_760,
      1024,
      1_073_741_824,
    ),
    max_chars: fields.integer('Characters of a page that an agent is given.', 50_000, 100, 10_000_000),
    timeout_secs: fields.integer('Seconds that fetching a page may take.', 30, 1, 300),
    search_provider: v.optional(
      v.pipe(
        v.picklist(['auto', 'none', 'brave', 'tavily', 'searxng']),
        v.description(
          'Who answers web_search: `auto` takes the first with a key or an address; without one there is no tool.',
        ),
      ),
      'auto',
    ),
    brave_api_key: key('Key of Brave Search; the vault entry of this name does the same.'),
    tavily_api_key: key('Key of Tavily; the vault entry of this name does the same.'),
    searxng_url: v.optional(url('Address of a SearXNG server; a private one must be in [outbound] allow too.')),
    brave_url: v.optional(url('Address of the API of Brave Search.'), 'https://api.search.brave.com'),
    tavily_url: v.optional(url('Address of the API of Tavily.'), 'https://api.tavily.com'),
    idempotent_hosts: fileOnly(
      'says which requests are sent again after a crash',
      v.optional(
        v.pipe(
          v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(253))),
          v.maxLength(100),
          v.description(
            'Hosts that recognise a repeated request by its Idempotency-Key, such as `api.example.com`: a POST or ' +
              'PATCH that a crash cut off is sent to them again.',
          ),
        ),
        [],
      ),
    ),
    max_results: fields.integer('Results of a search when the call sets no number.', 5, 1, 20),
  }),
)

export default definePlugin({
  name: 'web',
  version: '1.0.0',
  config: Config,
  requires: { agents: Agents, audit: Audit },
  async setup({ config, fetch, log, services, tools, vault }) {
    const provider = await choose(config, fetch, vault)
    if (!provider && config.search_provider !== 'auto' && config.search_provider !== 'none')
      log.warn(`web_search is not offered: ${config.search_provider} has no key or address`)
    tools.add(
      ...webTools({
        ...services,
        fetch,
        provider,
        idempotentHosts: config.idempotent_hosts,
        limits: {
          maxBytes: config.max_response_bytes,
          maxChars: config.max_chars,
          timeoutSecs: config.timeout_secs,
          maxResults: config.max_results,
        },
      }),
    )
    return {}
  },
})

async function choose(
  config: v.InferOutput<typeof Config>,
  fetch: Fetch,
  vault: Vault,
): Promise<SearchProvider | undefined> {
  const keys: Readonly<Record<'brave' | 'tavily', Key>> = {
    brave: async () => config.brave_api_key ?? (await vault.read('brave_api_key')),
    tavily: async () => config.tavily_api_key ?? (await vault.read('tavily_api_key')),
  }
  const language =
    config.search_provider === 'auto'
      ? (['brave', 'tavily', 'searxng'] as const)
      : config.search_provider === 'none'
        ? []
        : [config.search_provider]
  for (const name of language) {
    if (name === 'searxng') {
      if (config.searxng_url !== undefined) return (await import('./search.ts')).searxng(fetch, config.searxng_url)
    } else if ((await keys[name]()) !== undefined) {
      const { brave, tavily } = await import('./search.ts')
      return name === 'brave'
        ? brave(fetch, keys.brave, config.brave_url)
        : tavily(fetch, keys.tavily, config.tavily_url)
    }
  }
  return undefined
}
