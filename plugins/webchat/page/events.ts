import { createParser } from 'eventsource-parser'
import { parseFrame } from './wire.ts'
import type { ServerFrame } from './wire.ts'
import * as v from 'valibot'

const Data = v.looseObject({
  content: v.optional(v.string()),
  usage: v.optional(v.object({ input_tokens: v.optional(v.number(), 0), output_tokens: v.optional(v.number(), 0) })),
  error: v.optional(v.unknown()),
  message: v.optional(v.string()),
})

/** Frames of a `message/stream` answer (Interface 6.2), named as the socket names them. */
export async function* readEvents(response: Response): AsyncGenerator<ServerFrame> {
  if (!response.body) return
  const frames: ServerFrame[] = []
  const parser = createParser({
    onEvent(event) {
      const frame = toFrame(event.event ?? '', event.data)
      if (frame) frames.push(frame)
    },
  })
  for await (const text of chunks(response.body.pipeThrough(new TextDecoderStream()))) {
    parser.feed(text)
    yield* frames.splice(0)
  }
}

// Not every browser can iterate over a stream.
async function* chunks(stream: ReadableStream<string>): AsyncGenerator<string> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
  }
}

function toFrame(event: string, text: string): ServerFrame | undefined {
  const data = v.parse(Data, JSON.parse(text))
  switch (event) {
    case 'chunk':
      return parseFrame({ type: 'text_delta', content: data.content ?? '' })
    case 'tool_use':
      return parseFrame({ ...data, type: 'tool_start' })
    case 'tool_result':
      return parseFrame({ ...data, type: 'tool_end' })
    case 'done':
      return parseFrame({ ...data, type: 'response', ...data.usage })
    case 'error':
      return { type: 'error', content: data.content ?? data.message ?? errorText(data.error) }
    default:
      return undefined
  }
}

function errorText(error: unknown): string {
  if (typeof error === 'string') return error
  const coded = v.safeParse(v.object({ message: v.string() }), error)
  return coded.success ? coded.output.message : 'The answer failed.'
}
