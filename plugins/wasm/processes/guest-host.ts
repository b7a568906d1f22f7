import type { FromHost, ToHost } from '../guest-process.ts'
import { GuestRunner } from '../runner.ts'

/** The process of all guests, each in a thread. What they leak in memory and break ends with it. */
const runner = new GuestRunner()
const running = new Map<number, AbortController>()
const questions = new Map<
  number,
  { readonly resolve: (answer: Uint8Array) => void; readonly reject: (error: Error) => void }
>()
let lastQuestion = 0

const send = (message: FromHost): void => {
  if (process.connected) process.send?.(message)
}

process.on('message', (message: ToHost) => {
  if (message.type === 'run') void run(message)
  else if (message.type === 'abort') running.get(message.id)?.abort(new Error('stopped'))
  else {
    const waiting = questions.get(message.question)
    questions.delete(message.question)
    if (message.refused === undefined) waiting?.resolve(message.answer)
    else waiting?.reject(new Error(message.refused))
  }
})
// The daemon has ended.
process.on('disconnect', () => process.exit(0))

async function run({ id, request, answers }: Extract<ToHost, { type: 'run' }>): Promise<void> {
  const stop = new AbortController()
  running.set(id, stop)
  try {
    const end = await runner.run({
      ...request,
      signal: stop.signal,
      ...(answers ? { host: (question: Uint8Array) => ask(id, question) } : {}),
    })
    send({ type: 'end', id, end })
  } catch (error) {
    // It was stopped, and the caller does not wait.
    send({ type: 'gone', id, message: error instanceof Error ? error.message : 'unknown' })
  } finally {
    running.delete(id)
  }
}

function ask(id: number, request: Uint8Array): Promise<Uint8Array> {
  const question = ++lastQuestion
  return new Promise((resolve, reject) => {
    questions.set(question, { resolve, reject })
    send({ type: 'ask', id, question, request })
  })
}
