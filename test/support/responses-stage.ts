import { codex } from '../../adapters/providers/responses/index.ts'
import { createOutbound } from '../../core/net/outbound.ts'
import { request } from '../contract/provider.ts'
import type { ProviderStage } from '../contract/provider.ts'
import { startFakeResponses } from './fake-responses.ts'
import type { FakeResponses } from './fake-responses.ts'
import { outboundSettings } from './provider-stage.ts'

/** The driver of the Responses API with a fake of the vendor behind it. */
export async function openResponses(
  model = 'gpt-5.3-codex',
): Promise<ProviderStage & { readonly fake: FakeResponses }> {
  const fake = await startFakeResponses('test-key')
  const outbound = createOutbound({ settings: () => outboundSettings })
  return {
    fake,
    client: codex.connect({
      name: 'codex',
      config: {},
      baseUrl: `${fake.origin}/v1`,
      fetch: outbound.forOperator(),
      apiKey: async () => 'test-key',
    }),
    play(scenario) {
      fake.play(scenario)
      return { ...request('go on'), model }
    },
    received: () => fake.asked.length,
    heard: () => fake.heard(),
    lastClosed: () => fake.asked.at(-1)?.closed ?? Promise.reject(new Error('no request')),
    async [Symbol.asyncDispose]() {
      await outbound[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}
