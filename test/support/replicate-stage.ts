import { replicate } from '../../adapters/providers/replicate/index.ts'
import { createOutbound } from '../../core/net/outbound.ts'
import { request } from '../contract/provider.ts'
import type { ProviderStage } from '../contract/provider.ts'
import { startFakeReplicate } from './fake-replicate.ts'
import type { FakeReplicate } from './fake-replicate.ts'
import { outboundSettings } from './provider-stage.ts'

export async function openReplicate(
  options: Parameters<typeof startFakeReplicate>[1] = {},
): Promise<ProviderStage & { readonly fake: FakeReplicate }> {
  const fake = await startFakeReplicate('r8_key', options)
  const outbound = createOutbound({ settings: () => outboundSettings })
  return {
    fake,
    client: replicate.connect({
      name: 'replicate',
      config: {},
      baseUrl: `${fake.origin}/v1`,
      fetch: outbound.forOperator(),
      apiKey: async () => 'r8_key',
    }),
    play(scenario) {
      fake.play(scenario)
      return { ...request('go on'), model: 'meta/meta-llama-3-70b-instruct' }
    },
    received: () => fake.creations.length,
    // Neither what was cached nor what was thought is counted.
    detailed: { input: 100, output: 50 },
    lastClosed: () => fake.streams.at(-1)?.closed ?? Promise.reject(new Error('no stream')),
    async [Symbol.asyncDispose]() {
      await outbound[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}
