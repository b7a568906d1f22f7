import * as v from 'valibot'
import { defineProvider, lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'

const Config = v.object({
  // Reading from Anthropic's cache costs 0.1 of the usual price, writing to it 1.25.
  prompt_caching: v.optional(
    v.pipe(v.boolean(), v.description('Marks the parts of a request for the prompt cache.')),
    true,
  ),
  thinking_budget_tokens: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1024),
      v.description('Thinking budget in tokens, for models that take one; counts towards the limit of the answer.'),
    ),
    16_000,
  ),
  betas: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.regex(/^[\w.-]+$/, 'expected the name of a beta, such as context-1m-2025-08-07'))),
      v.description('Names of betas, sent in the header anthropic-beta.'),
    ),
    [],
  ),
})
export type Config = v.InferOutput<typeof Config>

/** The Messages API. Source: https://platform.claude.com/docs/en/api/messages */
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
