import * as v from 'valibot'
import { defineProvider, lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'

const Config = v.object({
  /** Mark the parts of a request that come again, so that they are read from Anthropic's cache: 0.1 of the price, and 1.25 for the first time. */
  prompt_caching: v.optional(v.boolean(), true),
  /** The most that is thought before an answer, for models that want a number. In tokens; the answer's limit includes it. */
  thinking_budget_tokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1024)), 16_000),
  /** Sent as `anthropic-beta`. */
  betas: v.optional(
    v.array(v.pipe(v.string(), v.regex(/^[\w.-]+$/, 'expected the name of a beta, such as context-1m-2025-08-07'))),
    [],
  ),
})
export type Config = v.InferOutput<typeof Config>

/** The Messages API. Source of the wire: https://platform.claude.com/docs/en/api/messages */
export const anthropic: ProviderDriver<typeof Config> = {
  name: 'anthropic',
  title: 'Anthropic',
  envVar: 'ANTHROPIC_API_KEY',
  baseUrl: 'https://api.anthropic.com',
  defaultModel: 'claude-sonnet-5-5',
  config: Config,
  connect: (link) =>
    lazyClient(async () => (await import('./client.ts')).createClient(link, anthropic.defaultModel), { models: true }),
}

export default defineProvider('1.0.0', anthropic)
