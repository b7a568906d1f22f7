import { cohere } from '../../adapters/providers/cohere/index.ts'
import { createOutbound } from '../../core/net/outbound.ts'
import { request } from '../contract/provider.ts'
import type { ProviderStage } from '../contract/provider.ts'
import { startFakeCohere } from './fake-cohere.ts'
import type { FakeCohere } from './fake-cohere.ts'
import { outboundSettings } from './provider-stage.ts'

export async function openCohere(
  model = 'command-a-reasoning-08-2025',
): Promise<ProviderStage & { readonly fake: FakeCohere }> {
  const fake = await startFakeCohere('co-key')
  const outbound = createOutbound({ settings: () => outboundSettings })
  return {
    fake,
    client: cohere.connect({
      name: 'cohere',
      config: {},
      baseUrl: `${fake.origin}/v2`,
      fetch: outbound.forOperator(),
      apiKey: async () => 'co-key',
    }),
    play(scenario) {
      fake.play(scenario)
      return { ...request('go on'), model }
    },
    received: () => fake.completions.length,
    heard: () => fake.heard(),
    // Its thinking is not counted by itself.
    detailed: { input: 100, output: 50, cachedInput: 80 },
    lastClosed: () => fake.completions.at(-1)?.closed ?? Promise.reject(new Error('no request')),
    async [Symbol.asyncDispose]() {
      await outbound[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}
