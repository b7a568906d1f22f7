import { omitUndefined } from 'svc/sdk'
import type { TurnEvent } from '../contract.ts'
import { encodePhase, toObject } from './encode-sse.ts'

/** What names the turn in its frames, beside Interface 6.1: its id, and the client's own when it sent one. */
export interface FrameNames {
  readonly turnId: string
  readonly messageId?: string | undefined
}

/**
 * A frame for every event (Interface 6.1), plus `thinking_delta`, `phase` and `tool_end`. Reasoning is not sent as
 * `thinking`: that frame has no content and reports that the agent begins.
 */
export function encodeSocket(event: TurnEvent, names: FrameNames): string {
  switch (event.type) {
    case 'thinking':
      return JSON.stringify({ type: 'thinking', turn_id: names.turnId, ...own(names) })
    case 'text':
      return encodeDelta(event.delta)
    case 'reasoning':
      return JSON.stringify({ type: 'thinking_delta', content: event.delta, turn_id: names.turnId })
    case 'phase':
      return JSON.stringify({ ...encodePhase(event), turn_id: names.turnId })
    case 'tool-started':
      return JSON.stringify({ type: 'tool_start', tool: event.tool, id: event.callId })
    case 'tool-ended':
      return JSON.stringify({
        type: 'tool_end',
        tool: event.tool,
        id: event.callId,
        input: toObject(event.input),
        result: event.output,
        is_error: event.failed,
      })
    case 'end': {
      const { text, reasoning, usage, iterations, costUsd, provider, model, stop, sessionId, contextPressure } =
        event.result
      return JSON.stringify({
        type: 'response',
        content: text,
        ...omitUndefined({ thinking: reasoning }),
        input_tokens: usage.input,
        output_tokens: usage.output,
        iterations,
        cost_usd: costUsd,
        provider,
        model,
        stop,
        turn_id: names.turnId,
        session_id: sessionId,
        ...omitUndefined({ context_pressure: contextPressure }),
        ...own(names),
      })
    }
  }
}
export function encodeDelta(delta: string): string {
  return `{"type":"text_delta","content":${JSON.stringify(delta)}}`
}
function own({ messageId }: FrameNames): object {
  return omitUndefined({ message_id: messageId })
}

/** What a slash command answers: a response that cost nothing. */
export function encodeNotice(content: string): string {
  return JSON.stringify({ type: 'response', content, input_tokens: 0, output_tokens: 0, iterations: 0, cost_usd: 0 })
}
export function encodeError(content: string, code: string, names?: FrameNames): string {
  return JSON.stringify({ type: 'error', content, code, ...(names ? { turn_id: names.turnId, ...own(names) } : {}) })
}

/** Joins deltas: the first goes out at once, later ones when enough has come together or enough time has passed. */
export class Coalescer {
  readonly #options: { readonly ms: number; readonly chars: number; readonly send: (delta: string) => void }
  #text = ''
  #begun = false
  #timer: NodeJS.Timeout | undefined
  constructor(options: { readonly ms: number; readonly chars: number; readonly send: (delta: string) => void }) {
    this.#options = options
  }

  add(delta: string): void {
    this.#text += delta
    if (!this.#begun || this.#text.length >= this.#options.chars) {
      this.#begun = true
      this.flush()
    } else this.#timer ??= setTimeout(() => this.flush(), this.#options.ms).unref()
  }
  /** Sends what is held back. Leaves no timer behind. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#options.send(text)
  }
}
