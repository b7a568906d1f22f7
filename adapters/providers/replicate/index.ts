import * as v from 'valibot'
import { defineProvider, lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'

/**
 * Language models on Replicate. All they have in common is a prompt: a conversation is sent as a transcript, without
 * tools, and with its newest image. Source: https://replicate.com/docs/reference/http
 */
export const replicate: ProviderDriver = {
  name: 'replicate',
  title: 'Replicate',
  envVar: 'REPLICATE_API_TOKEN',
  baseUrl: 'https://api.replicate.com/v1',
  defaultModel: 'meta/meta-llama-3-70b-instruct',
  config: v.object({}),
  connect: (link) =>
    lazyClient(async () => (await import('./client.ts')).createClient(link, replicate.defaultModel), { models: true }),
}

export default defineProvider('1.0.0', replicate)
