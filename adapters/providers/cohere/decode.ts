import * as v from 'valibot'
import { isObject, UpstreamFailure } from 'svc/sdk'
import { AnswerDecoder, usageOf } from 'svc/providers'
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

  protected override event(json: unknown): void {
    const text = usualText(json)
    if (text !== undefined) {
      this.text.understood = true
      return this.text.addText(text)
    }
    const event = this.parse(StreamEvent, json)
    if (!event) return
    const { type, index, delta } = event
    const message = delta?.message
    if (type === 'message-end') {
      this.#finish = delta?.finish_reason ?? 'COMPLETE'
      this.#problem = delta?.error ?? undefined
      this.#usage = delta?.usage
    } else if (type === 'tool-plan-delta') {
      this.#plan += message?.tool_plan ?? ''
      this.text.addThinking(message?.tool_plan ?? '')
    } else if (message?.tool_calls && !Array.isArray(message.tool_calls))
      this.#call(type === 'tool-call-start', index ?? 0, message.tool_calls)
    else if (message?.content && !Array.isArray(message.content)) this.#content(message.content)
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
    const problem = this.#problem ?? finish
    const isOverloaded = /overload|capacity|unavailable/i.test(problem)
    const reason = isOverloaded ? 'overloaded' : 'server_error'
    return new UpstreamFailure(this.provider, `${this.provider} failed during its answer: ${problem}`, {
      reason: finish === 'TIMEOUT' ? 'timeout' : reason,
      retry: 'later',
    })
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

/**
 * The text of an event that says nothing else, as nearly all do. Read by hand: a schema costs more than the parsing
 * of the JSON.
 */
function usualText(json: unknown): string | undefined {
  if (
    !isObject(json) ||
    json['type'] !== 'content-delta' ||
    !isObject(json['delta']) ||
    !isObject(json['delta']['message']) ||
    !isObject(json['delta']['message']['content'])
  )
    return undefined
  const { text, thinking } = json['delta']['message']['content']
  return typeof text === 'string' && !thinking ? text : undefined
}

/**
 * What is charged for, or else what was counted: Cohere's own words around a prompt are counted and not charged for.
 */
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
