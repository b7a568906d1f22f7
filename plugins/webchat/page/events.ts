import { createParser } from 'eventsource-parser'
import * as v from 'valibot'
import { ActiveSession, FollowedTurn, OfTurn, parseFrame, Snapshot } from './wire.ts'
import type { ServerFrame } from './wire.ts'

const Data = v.looseObject({
  content: v.optional(v.string()),
  usage: v.optional(v.object({ input_tokens: v.optional(v.number(), 0), output_tokens: v.optional(v.number(), 0) })),
  error: v.optional(v.unknown()),
  message: v.optional(v.string()),
})

/** The events of a session's stream. */
export type Followed =
  | {
      readonly type: 'snapshot'
      readonly activeId: string
      readonly turns: readonly FollowedTurn[]
      readonly frames: readonly { readonly turnId: string; readonly frame: ServerFrame }[]
    }
  | ({ readonly type: 'message' } & FollowedTurn)
  | { readonly type: 'frame'; readonly turnId: string; readonly frame: ServerFrame }
  | { readonly type: 'active'; readonly sessionId: string }
  | { readonly type: 'settled'; readonly turnId: string }
  | { readonly type: 'cleared' }
  /** The stream is alive. */
  | { readonly type: 'alive' }

/** Frames of a `message/stream` answer (Interface 6.2), named as the socket names them. */
export async function* readEvents(response: Response): AsyncGenerator<ServerFrame> {
  for await (const event of parsed(response)) {
    if (event === undefined) continue
    const frame = toFrame(event.event, v.parse(Data, event.data))
    if (frame) yield frame
  }
}

export async function* readFollowed(response: Response): AsyncGenerator<Followed> {
  for await (const event of parsed(response)) {
    const followed: Followed | undefined = event === undefined ? { type: 'alive' } : toFollowed(event.event, event.data)
    if (followed) yield followed
  }
}

function toFollowed(event: string, data: unknown): Followed | undefined {
  switch (event) {
    case 'snapshot': {
      const snapshot = v.parse(Snapshot, data)
      return {
        type: 'snapshot',
        activeId: snapshot.active_session_id,
        turns: snapshot.turns,
        frames: snapshot.events.flatMap(({ event: name, data: each }) => toTurnFrame(name, each) ?? []),
      }
    }
    case 'message':
      return { type: 'message', ...v.parse(FollowedTurn, data) }
    case 'active':
      return { type: 'active', sessionId: v.parse(ActiveSession, data).session_id }
    case 'retried':
    case 'dropped':
      return { type: 'settled', turnId: v.parse(OfTurn, data).turn_id }
    case 'cleared':
      return { type: 'cleared' }
    default: {
      const found = toTurnFrame(event, data)
      return found && { type: 'frame', ...found }
    }
  }
}
/** Nothing for an event that belongs to no turn: the stream itself ends, and is opened again. */
function toTurnFrame(event: string, data: unknown): { turnId: string; frame: ServerFrame } | undefined {
  const of = v.safeParse(OfTurn, data)
  const frame = of.success ? toFrame(event, v.parse(Data, data)) : undefined
  return of.success && frame ? { turnId: of.output.turn_id, frame } : undefined
}

/** `undefined` for a comment, which only keeps the stream alive. */
async function* parsed(response: Response): AsyncGenerator<{ event: string; data: unknown } | undefined> {
  if (!response.body) return
  const events: ({ event: string; data: unknown } | undefined)[] = []
  const parser = createParser({
    onEvent(event) {
      events.push({ event: event.event ?? '', data: JSON.parse(event.data) })
    },
    onComment() {
      events.push(undefined)
    },
  })
  for await (const text of chunks(response.body.pipeThrough(new TextDecoderStream()))) {
    parser.feed(text)
    yield* events.splice(0)
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

function toFrame(event: string, data: v.InferOutput<typeof Data>): ServerFrame | undefined {
  switch (event) {
    case 'chunk':
      return parseFrame({ type: 'text_delta', content: data.content ?? '' })
    case 'thinking':
      return parseFrame({ type: 'thinking_delta', content: data.content ?? '' })
    case 'phase':
      return parseFrame({ ...data, type: 'phase' })
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
