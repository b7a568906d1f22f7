import * as v from 'valibot'
import { defineProvider, estimateUsage } from 'svc/providers'
import type { CompletionEvent, CompletionRequest } from 'svc/providers'

/**
 * A provider of models in one file: drop a copy into `<home>/plugins`, edit it, and the next turn of an agent with
 * `provider = "parrot"` uses it.
 */
export default defineProvider('1.0.0', {
  name: 'parrot',
  title: 'Parrot',
  defaultModel: 'grey',
  config: v.object({}),
  // A real one sends requests with `link.fetch` to `link.baseUrl`, asks `link.apiKey()` before each, and names its
  // `envVar` and `baseUrl` above.
  connect: () => ({
    async *complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
      const last = request.turns.findLast((turn) => turn.role === 'user')
      const said = last?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? ''
      for (const word of said.split(/(?<=\s)/)) {
        signal.throwIfAborted()
        yield { type: 'text', delta: word }
      }
      yield { type: 'end', stop: 'done', usage: estimateUsage(request, said.length) }
    },
    models: async () => ['grey'],
    probe: async () => ({ model: 'grey' }),
  }),
})
