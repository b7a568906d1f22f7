/** What the streams of the vendors look like that have a driver of their own, for the figure `providers`. */
import { crc32 } from 'node:zlib'
import type { Json } from '../../support/json.ts'

export interface Event {
  readonly name?: string
  readonly data: unknown
}
export interface Wire {
  /** Its driver, and its section `[providers.<name>]` beside address and key. */
  readonly name: string
  readonly model: string
  readonly section?: string
  readonly type: string
  readonly head: readonly Event[]
  /** One token, `word `. */
  readonly token: Event
  readonly tail: (tokens: number) => readonly Event[]
  /** The text in the data of one event, as the simplest reader finds it. */
  readonly text: (data: Json) => string | undefined
  /** How an event looks on the wire; as one of a `text/event-stream` when absent. */
  readonly write?: (event: Event) => Buffer
}

export function writeSse({ name, data }: Event): Buffer {
  return Buffer.from(
    `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
  )
}
function writeFrame({ name = '', data }: Event): Buffer {
  const header = (key: string, value: string): Buffer =>
    Buffer.concat([Buffer.from([key.length]), Buffer.from(key), Buffer.from([7, 0, value.length]), Buffer.from(value)])
  const headers = Buffer.concat([
    header(':event-type', name),
    header(':content-type', 'application/json'),
    header(':message-type', 'event'),
  ])
  const payload = Buffer.from(JSON.stringify(data))
  const frame = Buffer.alloc(16 + headers.length + payload.length)
  frame.writeUInt32BE(frame.length, 0)
  frame.writeUInt32BE(headers.length, 4)
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8)
  headers.copy(frame, 12)
  payload.copy(frame, 12 + headers.length)
  frame.writeUInt32BE(crc32(frame.subarray(0, frame.length - 4)), frame.length - 4)
  return frame
}

const openai = (delta: object, finish: string | null = null): Event => ({
  data: {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'bench',
    choices: [{ index: 0, delta, finish_reason: finish }],
  },
})
const gemini = (text: string, more: object = {}): Event => ({
  data: {
    candidates: [{ content: { parts: [{ text }], role: 'model' }, index: 0, ...more }],
    usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 },
    modelVersion: 'bench',
    responseId: 'r',
  },
})
const SSE = 'text/event-stream'

export const wires: readonly Wire[] = [
  {
    name: 'openai',
    model: 'bench',
    type: SSE,
    head: [openai({ role: 'assistant', content: '' })],
    token: openai({ content: 'word ' }),
    tail: () => [openai({}, 'stop'), { data: '[DONE]' }],
    text: (data) => data.choices[0]?.delta.content,
  },
  {
    name: 'anthropic',
    model: 'claude-haiku-5-5',
    type: SSE,
    head: [
      {
        name: 'message_start',
        data: {
          type: 'message_start',
          message: {
            id: 'm',
            type: 'message',
            role: 'assistant',
            content: [],
            usage: { input_tokens: 10, output_tokens: 1 },
          },
        },
      },
      {
        name: 'content_block_start',
        data: { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      },
    ],
    token: {
      name: 'content_block_delta',
      data: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'word ' } },
    },
    tail: (tokens) => [
      { name: 'content_block_stop', data: { type: 'content_block_stop', index: 0 } },
      {
        name: 'message_delta',
        data: {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: tokens },
        },
      },
      { name: 'message_stop', data: { type: 'message_stop' } },
    ],
    text: (data) => data.delta?.text,
  },
  {
    name: 'gemini',
    model: 'gemini-2.5-flash',
    type: SSE,
    head: [],
    token: gemini('word '),
    tail: () => [gemini('', { finishReason: 'STOP' })],
    text: (data) => data.candidates[0]?.content.parts[0]?.text,
  },
  {
    name: 'bedrock',
    model: 'amazon.nova-lite-v1:0',
    type: 'application/vnd.amazon.eventstream',
    write: writeFrame,
    head: [{ name: 'messageStart', data: { role: 'assistant', p: 'abcd' } }],
    token: { name: 'contentBlockDelta', data: { contentBlockIndex: 0, delta: { text: 'word ' }, p: 'abcdefghij' } },
    tail: (tokens) => [
      { name: 'contentBlockStop', data: { contentBlockIndex: 0, p: 'ab' } },
      { name: 'messageStop', data: { stopReason: 'end_turn', p: 'abc' } },
      {
        name: 'metadata',
        data: {
          usage: { inputTokens: 10, outputTokens: tokens, totalTokens: 10 + tokens },
          metrics: { latencyMs: 1 },
          p: 'a',
        },
      },
    ],
    text: (data) => data.delta?.text,
  },
  {
    name: 'cohere',
    model: 'command-a-03-2025',
    type: SSE,
    head: [
      {
        name: 'message-start',
        data: {
          id: 'm',
          type: 'message-start',
          delta: { message: { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] } },
        },
      },
      {
        name: 'content-start',
        data: { type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } },
      },
    ],
    token: {
      name: 'content-delta',
      data: { type: 'content-delta', index: 0, delta: { message: { content: { text: 'word ' } } } },
    },
    tail: (tokens) => [
      { name: 'content-end', data: { type: 'content-end', index: 0 } },
      {
        name: 'message-end',
        data: {
          type: 'message-end',
          delta: {
            finish_reason: 'COMPLETE',
            usage: {
              billed_units: { input_tokens: 10, output_tokens: tokens },
              tokens: { input_tokens: 10, output_tokens: tokens },
            },
          },
        },
      },
    ],
    text: (data) => data.delta?.message?.content?.text,
  },
]
export function wireOf(name: string | undefined): Wire {
  const wire = wires.find((each) => each.name === name)
  if (!wire) throw new Error(`there is no wire ${name}`)
  return wire
}
