import * as v from 'valibot'
import { defineProvider, lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'

/** Cohere's chat API, version 2. Source: https://docs.cohere.com/reference/chat-stream */
export const cohere: ProviderDriver = {
  name: 'cohere',
  title: 'Cohere',
  envVar: 'COHERE_API_KEY',
  otherEnvVars: ['CO_API_KEY'],
  baseUrl: 'https://api.cohere.com/v2',
  defaultModel: 'command-a-03-2025',
  embedding: { model: 'embed-v4.0', texts: 96, chars: 300_000 },
  config: v.object({}),
  connect: (link) =>
    lazyClient(async () => (await import('./client.ts')).createClient(link, cohere.defaultModel), {
      models: true,
      embed: true,
    }),
}

export default defineProvider('1.0.0', cohere)
