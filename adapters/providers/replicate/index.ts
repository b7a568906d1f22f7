import * as v from 'valibot'
import { defineProvider, lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'

/**
 * Language models on Replicate. What they take differs from model to model, and what all of them take is a prompt: a
 * conversation is
 * written down as one, tools are not offered to them, and of pictures the newest is sent. Source:
 * https://replicate.com/docs/reference/http
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
