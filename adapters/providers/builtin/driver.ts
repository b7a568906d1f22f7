import * as v from 'valibot'
import type { ProviderDriver } from 'svc/providers'

const MODEL = 'offline'

/** The default without configuration: no network, no key, deterministic. Its answers say what it is. */
export const builtin: ProviderDriver = {
  name: 'builtin',
  title: 'Built-in offline model',
  defaultModel: MODEL,
  config: v.object({}),
  embedding: { model: 'ngram-256', texts: 1000, chars: 1_000_000 },
  connect: () => ({
    async *complete(request, signal) {
      const { complete } = await import('./completion.ts')
      yield* complete(request, signal)
    },
    embed: async (request, signal) => (await import('./embedding.ts')).embedLocally(request, signal),
    models: async () => [MODEL],
    probe: async (signal) => {
      signal.throwIfAborted()
      return { model: MODEL }
    },
  }),
}
