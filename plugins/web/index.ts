import * as v from 'valibot'
import { definePlugin, fileOnly, secret, settable } from 'svc/sdk'
import type { Fetch, Vault } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { brave, searxng, tavily } from './search.ts'
import type { Key, SearchProvider } from './search.ts'
import { webTools } from './tools.ts'

const whole = (least: number, most: number) => v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most))
const key = v.optional(secret(v.pipe(v.string(), v.minLength(1))))
/** Where a key is sent is for the owner of the machine to say. */
const url = fileOnly('says where keys of searches are sent', v.pipe(v.string(), v.url()))
const Config = settable(
  'says how much of the web is read, and with whose key',
  v.object({
    max_response_bytes: v.optional(whole(1024, 1_073_741_824), 10_485_760),
    max_chars: v.optional(whole(100, 10_000_000), 50_000),
    timeout_secs: v.optional(whole(1, 300), 30),
    /** `auto` takes the first one that has what it needs. Without any, web_search is not offered. */
    search_provider: v.optional(v.picklist(['auto', 'none', 'brave', 'tavily', 'searxng']), 'auto'),
    /** The vault entries of the same names do as well. */
    brave_api_key: key,
    tavily_api_key: key,
    /** Address of a server; a private one must be in [outbound] allow too. */
    searxng_url: v.optional(url),
    brave_url: v.optional(url, 'https://api.search.brave.com'),
    tavily_url: v.optional(url, 'https://api.tavily.com'),
    max_results: v.optional(whole(1, 20), 5),
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
  const wanted =
    config.search_provider === 'auto'
      ? (['brave', 'tavily', 'searxng'] as const)
      : config.search_provider === 'none'
        ? []
        : [config.search_provider]
  for (const name of wanted) {
    if (name === 'searxng') {
      if (config.searxng_url !== undefined) return searxng(fetch, config.searxng_url)
    } else if ((await keys[name]()) !== undefined)
      return name === 'brave'
        ? brave(fetch, keys.brave, config.brave_url)
        : tavily(fetch, keys.tavily, config.tavily_url)
  }
  return undefined
}
