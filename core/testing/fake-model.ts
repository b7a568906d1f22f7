import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CompletionEvent, CompletionRequest } from 'svc/providers'

const FAKE_NAME = 'fake-model'

/** What makes it the default, in the configuration. */
export const fakeDefaults = { default_provider: 'fake', default_model: FAKE_NAME }

/** What the model answers with: a text, or calls of tools that come before its next answer. */
export type FakeAnswer =
  | string
  | { readonly calls: readonly { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }[] }
  | { readonly fails: Error }

/** A model that says what a test tells it to. Agents use it as `provider = "fake"`, and by default. */
export class FakeModel {
  /** What it was asked, the latest last. */
  readonly requests: CompletionRequest[] = []
  readonly #answers: FakeAnswer[] = []

  /** Queues answers: each request takes one. With none left it repeats the text of the last message. */
  answer(...answers: readonly FakeAnswer[]): void {
    this.#answers.push(...answers)
  }

  /** Called by the provider of the test. */
  async *complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    signal.throwIfAborted()
    this.requests.push(request)
    const answer = this.#answers.shift() ?? lastText(request)
    if (typeof answer === 'object' && 'fails' in answer) throw answer.fails
    const usage = { input: request.turns.length, output: 1 }
    if (typeof answer === 'string') {
      yield { type: 'text', delta: answer }
      yield { type: 'end', stop: 'done', usage }
      return
    }
    for (const [index, { tool, args }] of answer.calls.entries())
      yield { type: 'call', call: { id: `call-${this.requests.length}-${index}`, name: tool, args } }
    yield { type: 'end', stop: 'calls', usage }
  }
}

function lastText(request: CompletionRequest): string {
  const last = request.turns.at(-1)
  if (last?.role !== 'user') return last?.text ?? ''
  return last.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

const installed = new Map<string, FakeModel>()
const REGISTRY = Symbol.for('svc/testing:installed')

/**
 * Writes the plugin that offers it. The daemon reads plugins from files, so the instance is handed over under a name,
 * which the returned function forgets.
 */
export async function installModel(fake: FakeModel, folder: string): Promise<() => void> {
  const id = randomUUID()
  installed.set(id, fake)
  Object.assign(globalThis, { [REGISTRY]: installed })
  const source = `import * as v from 'valibot'
import { defineProvider } from 'svc/providers'
const fake = globalThis[Symbol.for('svc/testing:installed')].get(${JSON.stringify(id)})
export default defineProvider('1.0.0', {
  name: 'fake',
  title: 'Fake',
  defaultModel: '${FAKE_NAME}',
  config: v.object({}),
  connect: () => ({
    complete: (request, signal) => fake.complete(request, signal),
    models: async () => ['${FAKE_NAME}'],
    probe: async () => ({ model: '${FAKE_NAME}' }),
  }),
})
`
  await mkdir(folder)
  await writeFile(join(folder, 'provider-fake.ts'), source)
  return () => void installed.delete(id)
}
