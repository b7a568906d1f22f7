import { quote } from './plugin.ts'
import type { Template } from './template.ts'

/** A provider of models that repeats what it is told, and a test. */
export function providerFiles({ name, description }: Template): Readonly<Record<string, string>> {
  return {
    'index.ts': `import * as v from 'valibot'
import { defineProvider, estimateUsage } from 'svc/providers'
import type { CompletionEvent, CompletionRequest } from 'svc/providers'

/** ${description.replaceAll('*/', '') || 'A provider of models.'} Agents use it with \`provider = "${name}"\`. */
export default defineProvider('0.1.0', {
  name: '${name}',
  title: ${quote(name)},
  apiVersion: '^1.2.0',
  defaultModel: 'echo',
  config: v.object({}),
  // A real one names \`envVar\` and \`baseUrl\` here, sends requests with \`link.fetch\` to \`link.baseUrl\`, and asks
  // \`link.apiKey()\` before each.
  connect: () => ({
    async *complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
      const last = request.turns.findLast((turn) => turn.role === 'user')
      const text = last?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? ''
      for (const word of text.split(/(?<=\\s)/)) {
        signal.throwIfAborted()
        yield { type: 'text', delta: word }
      }
      yield { type: 'end', stop: 'done', usage: estimateUsage(request, text.length) }
    },
    models: async () => ['echo'],
    probe: async () => ({ model: 'echo' }),
  }),
})
`,
    'index.test.ts': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPlugin } from 'svc/testing'

const plugin = new URL('./', import.meta.url)

test('answers a message', async () => {
  await using daemon = await startPlugin({ plugin })
  const agent = await daemon.spawn('echo', '[model]\\nprovider = "${name}"\\nmodel = "echo"')
  assert.equal(await daemon.say(agent, 'Hello there'), 'Hello there')
})
`,
  }
}
