import { expect, it } from 'vitest'
import { UpstreamFailure } from 'svc/sdk'
import { isPlausible } from 'svc/providers'
import type { CompletionEvent } from 'svc/providers'
import { Decoder as Cohere } from '../../../adapters/providers/cohere/decode.ts'
import { Decoder as Gemini } from '../../../adapters/providers/gemini/decode.ts'
import { Decoder as OpenAi } from '../../../adapters/providers/openai-compatible/decode.ts'
import { Decoder as Replicate } from '../../../adapters/providers/replicate/decode.ts'
import { request } from '../../contract/provider.ts'

interface Decoding {
  feed(bytes: Uint8Array): readonly CompletionEvent[]
  finish(): readonly CompletionEvent[]
}
const data = (...bodies: readonly object[]): string =>
  bodies.map((body) => `data: ${JSON.stringify(body)}\n\n`).join('')
const gemini = (part: object, more: object = {}): object => ({
  candidates: [{ content: { parts: [part] }, index: 0, ...more }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 1 },
})
const cohere = (type: string, message: object, more: object = {}): object => ({
  type,
  index: 0,
  delta: { message, ...more },
})
const openai = (delta: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
  usage: { prompt_tokens: 5, completion_tokens: 2 },
})

const streams: readonly (readonly [string, () => Decoding, string])[] = [
  [
    'gemini',
    () => new Gemini('x', request('hi')),
    data(
      gemini({ text: 'thought', thought: true }),
      gemini({ text: 'Grüße 😀' }),
      gemini({ functionCall: { id: 'f', name: 'add', args: { a: [1, null] } }, thoughtSignature: 's' }),
      gemini({ text: '' }, { finishReason: 'STOP' }),
    ),
  ],
  [
    'cohere',
    () => new Cohere('x', request('hi')),
    data(
      cohere('message-start', { content: [], tool_calls: [] }),
      cohere('content-delta', { content: { text: 'Grüße 😀' } }),
      cohere('tool-plan-delta', { tool_plan: 'p' }),
      cohere('tool-call-start', { tool_calls: { id: 'c', function: { name: 'add', arguments: '' } } }),
      cohere('tool-call-delta', { tool_calls: { function: { arguments: '{"a":1}' } } }),
      {
        type: 'message-end',
        delta: { finish_reason: 'COMPLETE', usage: { tokens: { input_tokens: 1, output_tokens: 2 } } },
      },
    ),
  ],
  [
    'openai',
    () => new OpenAi('x', request('hi'), { replay: 'reasoning_details' }),
    data(
      openai({ reasoning: 'r', reasoning_details: [{ text: 'r' }] }),
      openai({ content: 'Grüße 😀' }),
      openai({ tool_calls: [{ index: 0, id: 'c', function: { name: 'add', arguments: '{"a":1}' } }] }),
      openai({}, 'tool_calls'),
    ) + 'data: [DONE]\n\n',
  ],
  [
    'replicate',
    () => new Replicate('x', request('hi')),
    'event: output\ndata: Grüße\ndata: 😀\n\nevent: logs\ndata: x\n\nevent: done\ndata: {}\n\n',
  ],
]
/** The same numbers for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % below
  }
}
const HOSTILE = [
  'null',
  '[]',
  '{}',
  '-1',
  '1e999',
  '"\\u0000"',
  'true',
  '[[[[',
  '\r',
  '\n\n',
  'data:',
  'event: error\n',
  '"__proto__":{}',
  '\uFEFF',
  '\ud800',
]

it.each(streams)('a broken stream of %s is an answer or a failure of the vendor, never a defect', (_, open, stream) => {
  let ends = 0
  let failures = 0
  for (let seed = 1; seed <= 1500; seed++) {
    const random = randomOf(seed)
    let text = stream
    for (let change = 0; change <= random(4); change++) {
      const at = random(text.length)
      const with_ = HOSTILE[random(HOSTILE.length)] ?? ''
      const how = random(3)
      text =
        how === 0
          ? text.slice(0, at) + with_ + text.slice(at)
          : how === 1
            ? text.slice(0, at) + text.slice(at + 1 + random(12))
            : text.slice(0, at) + with_ + text.slice(at + with_.length)
    }
    const bytes = new TextEncoder().encode(text)
    const decoder = open()
    const events: CompletionEvent[] = []
    try {
      const step = 1 + random(40)
      for (let at = 0; at < bytes.length; at += step) events.push(...decoder.feed(bytes.subarray(at, at + step)))
      events.push(...decoder.finish())
      for (const event of events) {
        if (event.type === 'end') {
          ends++
          expect(isPlausible(event.usage), text).toBe(true)
        } else if (event.type === 'call')
          expect([typeof event.call.id, typeof event.call.name], text).toEqual(['string', 'string'])
        else expect(typeof event.delta === 'string' && event.delta !== '', text).toBe(true)
      }
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error
      failures++
    }
  }
  // Both have to happen, or the changes are of the wrong size.
  expect(failures).toBeGreaterThan(50)
  if (stream.includes('text') || stream.includes('content')) expect(ends).toBeGreaterThan(50)
})
