import { describe, expect, it } from 'vitest'
import type { CompletionEvent, ToolCall, Turn } from 'svc/providers'
import { createGuard, guardLimits } from '../../../plugins/chat/safety/loop-guard.ts'
import { runLoop } from '../../../plugins/chat/turn/loop.ts'
import type { LoopEvent, LoopInput, LoopPorts } from '../../../plugins/chat/turn/loop.ts'
import type { Offer, Outcome, ToolPorts } from '../../../plugins/chat/turn/tool-step.ts'

const call = (name: string, args: unknown = {}, id = `id-${name}`): CompletionEvent => ({
  type: 'call',
  call: { id, name, args },
})
const text = (delta: string): CompletionEvent => ({ type: 'text', delta })
const end = (stop: 'done' | 'calls' | 'length' = 'done'): CompletionEvent => ({
  type: 'end',
  stop,
  usage: { input: 1, output: 1 },
})

interface Scene {
  answers: CompletionEvent[][]
  tools?: Record<
    string,
    { risk?: 'read' | 'write'; run?: (call: ToolCall, signal: AbortSignal) => Promise<Outcome> | Outcome }
  >
  input?: Partial<LoopInput>
  callsPerTurn?: number
}

async function play({ answers, tools = {}, input = {}, callsPerTurn = 30 }: Scene) {
  const log: string[] = []
  const events: LoopEvent[] = []
  const asked: (readonly Turn[])[] = []
  const recorded: Outcome[][] = []
  let running = 0
  let together = 0
  const emit = (event: LoopEvent): void => {
    events.push(event)
  }
  const toolPorts: ToolPorts = {
    guard: createGuard({ ...guardLimits, callsPerTurn }),
    emit,
    offer(name): Offer {
      const tool = tools[name]
      return tool ? { risk: tool.risk ?? 'read', polls: false } : `There is no tool "${name}".`
    },
    async recordReceipt(each) {
      log.push(`receipt ${each.id}`)
    },
    async recordResults(results) {
      log.push(`results ${results.map((each) => each.call.id).join()}`)
      recorded.push(results.map(({ outcome }) => outcome))
    },
    async call(each, signal) {
      together = Math.max(together, ++running)
      log.push(`run ${each.id}`)
      try {
        return (await tools[each.name]?.run?.(each, signal)) ?? { text: 'done', failed: false }
      } finally {
        running--
      }
    },
  }
  const ports: LoopPorts = {
    emit,
    async complete(turns, _signal, onEvent) {
      asked.push([...turns])
      for (const event of answers[Math.min(asked.length, answers.length) - 1] ?? []) onEvent(event)
    },
    async recordCalls({ calls }) {
      log.push(`calls ${calls.map(({ id }) => id).join()}`)
    },
    tools: async () => toolPorts,
  }
  const result = await runLoop(
    {
      turns: [{ role: 'user', parts: [{ type: 'text', text: 'q' }] }],
      iterations: 0,
      maxIterations: 10,
      signal: new AbortController().signal,
      ...input,
    },
    ports,
  )
  return { events, result, log, asked, recorded, together: () => together }
}

describe('the loop', () => {
  it('answers without tools in one call of the model', async () => {
    const { events, result } = await play({ answers: [[text('a'), text(''), text('b'), end()]] })
    expect(events).toEqual([text('a'), text('b')])
    expect(result).toEqual({ stop: 'done', text: 'ab', usage: { input: 1, output: 1 }, iterations: 1 })
  })

  it('records the calls before a tool runs and the results before the model is asked again', async () => {
    const { log, asked, result, events } = await play({
      answers: [
        [text('let me look'), call('look'), end('calls')],
        [text('there'), end()],
      ],
      tools: { look: {} },
    })
    expect(log).toEqual(['calls id-look', 'run id-look', 'results id-look'])
    expect(asked[1]?.slice(1)).toEqual([
      { role: 'assistant', text: 'let me look', calls: [{ id: 'id-look', name: 'look', args: {} }] },
      { role: 'tool', callId: 'id-look', tool: 'look', text: 'done', failed: false },
    ])
    expect(result).toMatchObject({ stop: 'done', text: 'there', iterations: 2 })
    expect(events.map((event) => (event.type === 'text' ? event.delta : event.type))).toEqual([
      'let me look',
      'tool-started',
      'tool-ended',
      '\n\nthere',
    ])
  })

  it('runs calls that only read at once, others one after the other with a receipt in between', async () => {
    const gate = Promise.withResolvers<Outcome>()
    let waiting = 0
    const both = {
      run: () => {
        if (++waiting === 2) gate.resolve({ text: 'ok', failed: false })
        return gate.promise
      },
    }
    const reading = await play({
      answers: [[call('a'), call('b'), end('calls')], [end()]],
      tools: { a: both, b: both },
    })
    expect(reading.together()).toBe(2)
    const writing = await play({
      answers: [[call('a'), call('w'), end('calls')], [end()]],
      tools: { a: {}, w: { risk: 'write' } },
    })
    expect(writing.together()).toBe(1)
    expect(writing.log).toEqual(['calls id-a,id-w', 'run id-a', 'receipt id-a', 'run id-w', 'results id-a,id-w'])
  })

  it('tells the model about an unknown tool and about broken arguments without running anything', async () => {
    const { recorded, log } = await play({
      answers: [[call('ghost'), call('look', '{"a":', 'x'), end('calls')], [end()]],
      tools: { look: {} },
    })
    expect(recorded[0]?.map(({ failed }) => failed)).toEqual([true, true])
    expect(recorded[0]?.[0]?.text).toContain('no tool "ghost"')
    expect(recorded[0]?.[1]?.text).toContain('not valid JSON')
    expect(log.filter((line) => line.startsWith('run'))).toEqual([])
  })

  it('gives calls that share an id ids of their own', async () => {
    const { log } = await play({
      answers: [
        [call('look', { a: 1 }, 'same'), call('look', { a: 2 }, 'same'), call('look', { a: 3 }, ''), end('calls')],
        [call('look', { a: 4 }, 'same'), end('calls')],
        [end()],
      ],
      tools: { look: {} },
    })
    const ids = log.filter((line) => line.startsWith('calls')).flatMap((line) => line.slice(6).split(','))
    expect(new Set(ids).size).toBe(4)
    expect(ids[0]).toBe('same')
  })

  it('stops at the cap of calls of the model and says so', async () => {
    let n = 0
    const again = (): CompletionEvent[] => [call('look', { n: n++ }, `i${n}`), end('calls')]
    const { result, events } = await play({
      answers: [again(), again(), again()],
      tools: { look: {} },
      input: { maxIterations: 2 },
    })
    expect(result).toMatchObject({
      stop: 'iterations',
      iterations: 2,
      text: 'Stopped after 2 calls of the model without a final answer.',
    })
    expect(events.at(-1)).toMatchObject({ type: 'text' })
  })

  it('stops a model that calls too many tools, with a result for every call', async () => {
    const many = Array.from({ length: 200 }, (_, n) => call('look', { n }, `i${n}`))
    const { result, recorded, log } = await play({ answers: [[...many, end('calls')]], tools: { look: {} } })
    expect(recorded[0]).toHaveLength(200)
    expect(log.filter((line) => line.startsWith('run'))).toHaveLength(30)
    expect(result.stop).toBe('iterations')
    expect(result.text).toContain('more than 30 tool calls')
  })

  it('warns the model that goes in circles, in the result', async () => {
    const same = [call('look', {}, 'i'), end('calls')]
    const { recorded } = await play({ answers: [same, same, same, same, [end()]], tools: { look: {} } })
    expect(recorded.map(([outcome]) => outcome?.text.replace(/^done\s*/, '').slice(0, 18))).toEqual([
      '',
      '[warning: look gav',
      '[warning: look was',
      'blocked: look gave',
    ])
  })

  it('goes on after a restart with what is known and never runs it again', async () => {
    const { log, asked } = await play({
      answers: [[text('so'), end()]],
      tools: { look: { risk: 'write' } },
      input: {
        iterations: 1,
        pending: {
          calls: [{ id: 'p', name: 'look', args: {} }],
          known: new Map([['p', { text: 'unknown', failed: true }]]),
        },
      },
    })
    expect(log).toEqual(['results p'])
    expect(asked[0]?.at(-1)).toMatchObject({ role: 'tool', text: 'unknown' })
  })

  it('throws the reason of the signal and asks nothing more', async () => {
    const stop = new AbortController()
    const reason = new Error('enough')
    await expect(
      play({
        answers: [[call('look'), end('calls')], [end()]],
        input: { signal: stop.signal },
        tools: {
          look: {
            run: () => {
              stop.abort(reason)
              return { text: 'x', failed: false }
            },
          },
        },
      }),
    ).rejects.toBe(reason)
  })
})
