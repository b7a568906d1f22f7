import * as v from 'valibot'
import { defineProvider, lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'

/**
 * OpenAI's Responses API, for its models for code. Requests ask OpenAI to store nothing.
 * Source: https://platform.openai.com/docs/api-reference/responses
 */
export const codex: ProviderDriver = {
  name: 'codex',
  title: 'OpenAI Codex',
  envVar: 'OPENAI_API_KEY',
  sharedKey: true,
  baseUrl: 'https://api.openai.com/v1',
  defaultModel: 'gpt-5.3-codex',
  config: v.object({}),
  connect: (link) =>
    lazyClient(async () => (await import('./client.ts')).createClient(link, codex.defaultModel), { models: true }),
}

export default defineProvider('1.0.0', codex)
