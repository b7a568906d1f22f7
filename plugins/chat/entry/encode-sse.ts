import * as v from 'valibot'
import { Refusal, omitUndefined } from 'svc/sdk'
import type { EventStream, ServerSentEvent } from 'svc/sdk'
import type { TurnEvent, TurnPhase } from '../contract.ts'
import { explain } from '../turn/failure.ts'

/** The `data` of an event (Interface 6.2); `type` is for readers that look at data lines only. */
const turn = { turn_id: v.optional(v.string()) }
export const MessageEvent = v.variant('type', [
  v.object({ type: v.literal('chunk'), content: v.string(), done: v.literal(false), ...turn }),
  v.object({ type: v.literal('thinking'), content: v.string(), ...turn }),
  v.object({
    type: v.literal('phase'),
    phase: v.string(),
    detail: v.string(),
    retry_at: v.optional(v.string()),
    attempt: v.optional(v.number()),
    progress: v.optional(v.number()),
    total: v.optional(v.number()),
    ...turn,
  }),
  v.object({ type: v.literal('tool_use'), tool: v.string(), id: v.string(), ...turn }),
  v.object({
    type: v.literal('tool_result'),
    tool: v.string(),
    id: v.string(),
    input: v.record(v.string(), v.unknown()),
    result: v.string(),
    is_error: v.boolean(),
  }),
  v.object({
    type: v.literal('done'),
    done: v.literal(true),
    usage: v.object({ input_tokens: v.number(), output_tokens: v.number() }),
    iterations: v.number(),
    cost_usd: v.nullable(v.number()),
    session_id: v.string(),
    turn_id: v.string(),
    provider: v.string(),
    model: v.string(),
    stop: v.string(),
    context_pressure: v.optional(v.string()),
  }),
])

/**
 * The header of the answer and its first event name the turn, so that a reader that loses the connection can ask for
 * it. An error of the turn is thrown, and ends the stream with an `error` event. Not a generator: its `return` waits
 * for the pending `next`, and would keep a reader that left until the model's next word.
 */
export function encodeSse(events: AsyncIterable<TurnEvent>, turnId: string): EventStream {
  return {
    headers: { 'x-turn-id': turnId },
    holdsStatus: true,
    [Symbol.asyncIterator]() {
      const reader = events[Symbol.asyncIterator]()
      let name = `,"turn_id":${JSON.stringify(turnId)}}`
      return {
        async next() {
          for (;;) {
            const { done, value } = await reader.next()
            if (done) return { done: true, value: undefined }
            const encoded = encode(value)
            if (!encoded) continue
            if (name === '' || value.type === 'end') return { done: false, value: encoded }
            const named = { ...encoded, data: encoded.data.slice(0, -1) + name }
            name = ''
            return { done: false, value: named }
          }
        },
        async return() {
          await reader.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}

/**
 * The same for an `EventSource`, which reconnects whenever a stream ends or its connection drops, and can read neither
 * the status nor the body of a refusal. Its header goes out at once and names the turn to come back to; errors are
 * events.
 */
export function encodeEventSource(events: AsyncIterable<TurnEvent>, turnId: string): EventStream {
  const stream = encodeSse(events, turnId)
  return {
    headers: { 'x-turn-id': turnId },
    [Symbol.asyncIterator]() {
      const reader = stream[Symbol.asyncIterator]()
      let begun = false
      return {
        ...reader,
        next() {
          if (begun) return reader.next()
          begun = true
          return Promise.resolve({ done: false, value: { id: turnId, data: '' } })
        },
      }
    },
  }
}

/** For readers of several turns: each event names the one it belongs to. */
export function encodeEvent(event: TurnEvent, turnId: string): ServerSentEvent | undefined {
  const encoded = encode(event)
  if (!encoded || event.type === 'end') return encoded
  return { ...encoded, data: `${encoded.data.slice(0, -1)},"turn_id":${JSON.stringify(turnId)}}` }
}
/** What made a turn fail; its stream would end with this. */
export function encodeFailure(error: unknown, turnId: string): ServerSentEvent {
  const message = explain(error)
  const code = error instanceof Refusal ? error.code : message === undefined ? 'internal_error' : 'service_unavailable'
  return {
    event: 'error',
    data: JSON.stringify({ type: 'error', turn_id: turnId, error: { code, message: message ?? 'Internal error' } }),
  }
}

function encode(event: TurnEvent): ServerSentEvent | undefined {
  switch (event.type) {
    case 'text':
      return { event: 'chunk', data: `{"type":"chunk","content":${JSON.stringify(event.delta)},"done":false}` }
    case 'reasoning':
      return { event: 'thinking', data: JSON.stringify({ type: 'thinking', content: event.delta }) }
    case 'phase':
      return { event: 'phase', data: JSON.stringify(encodePhase(event)), provisional: true }
    case 'tool-started':
      return { event: 'tool_use', data: JSON.stringify({ type: 'tool_use', tool: event.tool, id: event.callId }) }
    case 'tool-ended':
      return {
        event: 'tool_result',
        data: JSON.stringify({
          type: 'tool_result',
          tool: event.tool,
          id: event.callId,
          input: toObject(event.input),
          result: event.output,
          is_error: event.failed,
        }),
      }
    case 'end': {
      const { usage, iterations, costUsd, sessionId, turnId, provider, model, stop, contextPressure } = event.result
      return {
        event: 'done',
        data: JSON.stringify({
          type: 'done',
          done: true,
          usage: { input_tokens: usage.input, output_tokens: usage.output },
          iterations,
          cost_usd: costUsd,
          session_id: sessionId,
          turn_id: turnId,
          provider,
          model,
          stop,
          ...omitUndefined({ context_pressure: contextPressure }),
        }),
      }
    }
    case 'thinking':
      return undefined
  }
}

/** The same in every stream. */
export function encodePhase({ phase, detail, retryAt, attempt, progress, total }: TurnPhase) {
  return {
    type: 'phase' as const,
    phase,
    detail,
    ...omitUndefined({ retry_at: retryAt, attempt, progress, total }),
  }
}

/** Interface 6.2 calls the input an object; a model may have written anything. */
export function toObject(input: unknown): object {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : { value: input ?? null }
}
