import * as v from 'valibot'
import { AnswerDecoder, usageOf } from 'svc/providers'
import type { AnswerEnd, ReplayPosition, Usage } from 'svc/providers'
import { failureInStream } from './errors.ts'
import { Replay, StreamEvent, Thought, WireUsage } from './wire.ts'
import type { Item } from './wire.ts'

/** Reads the events of the Responses API: output items by their index. */
export class Decoder extends AnswerDecoder {
  /** Indexes of the calls whose arguments are complete. */
  readonly #completeCalls = new Set<number>()
  readonly #thoughts = new Map<number, Thought>()
  /** Characters of the texts, by index. */
  readonly #texts = new Map<number, number>()
  #usage: unknown
  #stop: AnswerEnd['stop'] | undefined
  #isRefused = false

  protected override handleEvent(json: unknown): void {
    const event = this.parse(StreamEvent, json)
    if (!event) return
    const index = event.output_index ?? 0
    switch (event.type) {
      case 'response.output_text.delta':
        return this.#addText(index, event.delta ?? '')
      case 'response.refusal.delta':
        this.#isRefused = true
        return this.#addText(index, event.delta ?? '')
      case 'response.reasoning_summary_part.added':
        return (event.summary_index ?? 0) > 0 ? this.text.addThinking('\n\n') : undefined
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.text.addThinking(event.delta ?? '')
      case 'response.output_item.added':
        if (event.item?.type === 'function_call') this.#openCall(index, event.item)
        return
      case 'response.function_call_arguments.delta':
        return this.#addArguments(index, event.delta ?? '')
      case 'response.output_item.done':
        return event.item ? this.#closeItem(index, event.item) : undefined
      default:
        this.#endEvent(event)
    }
  }

  /** The events that end a response, one way or the other. */
  #endEvent({ type, response, error, message, code }: StreamEvent): void {
    if (type === 'response.failed')
      throw failureInStream(this.provider, response?.error ?? { message: undefined, code: undefined, type: undefined })
    if (type === 'error') throw failureInStream(this.provider, error ?? { message, code, type: undefined })
    if (type !== 'response.completed' && type !== 'response.incomplete') return
    const isFiltered = response?.incomplete_details?.reason === 'content_filter'
    this.#usage = response?.usage
    this.#stop = type === 'response.completed' ? 'done' : isFiltered ? 'refused' : 'length'
    this.isComplete = true
  }

  protected override end(): AnswerEnd | undefined {
    const stop = this.#stop
    if (stop === undefined) return undefined
    // The limit may have cut off the arguments of a call.
    if (stop !== 'done')
      for (const index of this.calls.indexes()) if (!this.#completeCalls.has(index)) this.calls.drop(index)
    const replay = this.#replay()
    const calls = this.calls.end()
    if (calls.some(({ name }) => name === '')) throw this.text.malformed('called a tool without a name')
    return {
      stop: stop === 'done' && this.#isRefused ? 'refused' : stop,
      calls,
      usage: readUsage(this.#usage),
      replay,
    }
  }

  #replay(): string | undefined {
    const pieces = new Map<number, Thought | ReplayPosition>(this.#thoughts)
    for (const [index, text] of this.#texts) pieces.set(index, { text })
    for (const [call, index] of this.calls.indexes().entries()) pieces.set(index, { call })
    return Replay.write([...pieces].toSorted(([a], [b]) => a - b).map(([, piece]) => piece))
  }

  #addText(index: number, text: string): void {
    if (text === '') return
    this.text.addText(text)
    this.#texts.set(index, (this.#texts.get(index) ?? 0) + text.length)
  }

  #openCall(index: number, { call_id: id, name, arguments: args }: Item) {
    return this.calls.open(index, { id: id ?? undefined, name: name ?? '', args: args ?? '' })
  }
  #addArguments(index: number, piece: string): void {
    const call = this.calls.get(index)
    if (call) this.calls.append(call, piece)
    else this.text.skip()
  }
  #closeItem(index: number, item: Item): void {
    if (item.type === 'function_call') {
      const call = this.#openCall(index, item)
      this.#completeCalls.add(index)
      if (!item.arguments) return
      call.args = ''
      this.calls.append(call, item.arguments)
    } else if (item.type === 'reasoning') {
      // The vendor stores nothing, so thinking is useless to it without its encrypted content.
      const thought = v.safeParse(Thought, item)
      if (thought.success) this.#thoughts.set(index, thought.output)
    }
  }
}

/** The vendor's counts; `undefined` when they are missing or implausible. */
function readUsage(wire: unknown): Usage | undefined {
  const usage = v.safeParse(WireUsage, wire)
  if (!usage.success) return undefined
  const { input_tokens, output_tokens, input_tokens_details: cache, output_tokens_details: details } = usage.output
  return usageOf({
    input: input_tokens,
    output: output_tokens,
    cachedInput: cache?.cached_tokens ?? 0,
    cacheWrite: cache?.cache_write_tokens || undefined,
    thinking: details?.reasoning_tokens,
  })
}
