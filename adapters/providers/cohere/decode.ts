import * as v from 'valibot'
import { isObject } from 'svc/sdk'
import type { UpstreamFailure } from 'svc/sdk'
import { AnswerDecoder, failureClass, failureInAnswer, usageOf } from 'svc/providers'
import type { AnswerEnd, Usage } from 'svc/providers'
import { writeReplay } from './replay.ts'
import { StreamEvent, WireUsage } from './wire.ts'
import type { WireCall } from './wire.ts'

const STOPS: Readonly<Record<string, 'length' | 'refused'>> = { MAX_TOKENS: 'length', ERROR_TOXIC: 'refused' }

/** Reads the events of Cohere's chat. Citations are left out. */
export class Decoder extends AnswerDecoder {
  #thinking = ''
  #plan = ''
  #usage: unknown
  #finish: string | undefined
  #problem: string | undefined

  protected override handleEvent(json: unknown): void {
    const text = readTextDelta(json)
    if (text !== undefined) {
      this.text.hasEvents = true
      return this.text.addText(text)
    }
    const event = this.parse(StreamEvent, json)
    if (event?.delta) this.#readDelta(event, event.delta)
    else if (event?.type === 'message-end') this.#finish = 'COMPLETE'
  }

  #readDelta({ type, index }: StreamEvent, delta: NonNullable<StreamEvent['delta']>): void {
    if (type === 'message-end') {
      this.#finish = delta.finish_reason ?? 'COMPLETE'
      this.#problem = delta.error ?? undefined
      this.#usage = delta.usage
      return
    }
    const { tool_plan: plan, tool_calls: call, content } = delta.message ?? {}
    if (type === 'tool-plan-delta') {
      this.#plan += plan ?? ''
      this.text.addThinking(plan ?? '')
    } else if (call && !Array.isArray(call)) this.#call(type === 'tool-call-start', index ?? 0, call)
    else if (content && !Array.isArray(content)) this.#content(content)
  }

  protected override end(): AnswerEnd | undefined {
    const finish = this.#finish
    if (finish === undefined) return undefined
    if (finish === 'ERROR' || finish === 'TIMEOUT') throw this.#failure(finish)
    return {
      stop: STOPS[finish] ?? 'done',
      calls: this.calls.end(),
      usage: readUsage(this.#usage),
      replay: writeReplay({ plan: this.#plan, thinking: this.#thinking }),
    }
  }

  #failure(finish: 'ERROR' | 'TIMEOUT'): UpstreamFailure {
    const message = this.#problem ?? finish
    const isOverloaded = /overload|capacity|unavailable/i.test(message)
    const reason = isOverloaded ? 'overloaded' : 'server_error'
    return failureInAnswer(this.provider, message, failureClass(finish === 'TIMEOUT' ? 'timeout' : reason))
  }

  #content({
    text,
    thinking,
  }: {
    readonly text?: string | null | undefined
    readonly thinking?: string | null | undefined
  }) {
    if (thinking) {
      this.#thinking += thinking
      this.text.addThinking(thinking)
    }
    if (text) this.text.addText(text)
  }

  #call(starts: boolean, index: number, { id, function: part }: WireCall): void {
    // A second start at the same place is another call.
    const place = starts && this.calls.get(index)?.name ? this.calls.size : index
    const call = this.calls.open(place, { id: id ?? `call_${index}` })
    if (part?.name) call.name = part.name
    this.calls.append(call, part?.arguments ?? '')
  }
}

/** Nearly every event is a text delta. Read by hand: the schema takes longer than parsing the JSON. */
function readTextDelta(json: unknown): string | undefined {
  if (!isObject(json) || json['type'] !== 'content-delta' || !isObject(json['delta'])) return undefined
  const { message } = json['delta']
  if (!isObject(message) || !isObject(message['content'])) return undefined
  const { text, thinking } = message['content']
  return typeof text === 'string' && !thinking ? text : undefined
}

/** Billed tokens, or else all tokens, which include Cohere's own words around the prompt. */
function readUsage(wire: unknown): Usage | undefined {
  const usage = v.safeParse(WireUsage, wire)
  if (!usage.success) return undefined
  const { billed_units: billed, tokens, cached_tokens: cached } = usage.output
  return usageOf({
    input: billed?.input_tokens ?? tokens?.input_tokens,
    output: billed?.output_tokens ?? tokens?.output_tokens,
    cachedInput: cached || undefined,
  })
}
