import * as v from 'valibot'
import { EventStreamReader, readJson, StreamedText } from 'svc/sdk'
import { estimateUsage, plausible, readArgs } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, Usage } from 'svc/providers'
import { failureInStream } from './errors.ts'
import { toReplay } from './replay.ts'
import type { Piece } from './replay.ts'
import { StreamEvent, Thought } from './wire.ts'
import type { Item, WireUsage } from './wire.ts'

/** Arguments of one call that grow over this are a fault of the other side. In characters. */
const MOST_ARGS = 8_388_608
const MOST_CALLS = 256

interface OpenCall {
  id: string
  name: string
  args: string
  done: boolean
}

/** Turns the pieces of one streamed response into events. `feed` and `finish` return what they made. Holds no timers and no connections. */
export class Decoder {
  readonly #name: string
  readonly #request: CompletionRequest
  readonly #said: StreamedText
  readonly #stream = new EventStreamReader(
    ({ data }) => this.#event(data),
    (most) => this.#said.broken(`sent a line of more than ${most} characters`),
  )
  /** By their place in the response. */
  readonly #calls = new Map<number, OpenCall>()
  readonly #thoughts = new Map<number, Thought>()
  /** Characters of the texts, by their place. */
  readonly #texts = new Map<number, number>()
  #usage: WireUsage | undefined
  #stop: 'done' | 'length' | 'refused' | undefined
  #refused = false

  constructor(name: string, request: CompletionRequest) {
    this.#name = name
    this.#said = new StreamedText(name)
    this.#request = request
  }

  /** Whether the last event was read: the rest of the stream is of no interest. */
  get done(): boolean {
    return this.#stop !== undefined
  }

  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#stream.feed(bytes)
    return this.#said.take()
  }

  /** The rest, ending with `end`. Throws `cut` when the response stopped before its last event. */
  finish(): readonly CompletionEvent[] {
    this.#stream.finish()
    const stop = this.#said.requireEnd(this.#stop)
    const events: CompletionEvent[] = [...this.#said.take()]
    // A call that the limit cut off has no end to its arguments.
    const calls = [...this.#calls].filter(([, { done }]) => done || stop === 'done').toSorted(([a], [b]) => a - b)
    for (const [, { id, name, args }] of calls) {
      if (name === '') throw this.#said.broken('called a tool without a name')
      events.push({ type: 'call', call: { id, name, args: readArgs(args) } })
      this.#said.chars += name.length + args.length
    }
    const replay = calls.length > 0 ? this.#replay(calls.map(([at]) => at)) : undefined
    events.push({
      type: 'end',
      stop: stop !== 'done' ? stop : this.#refused ? 'refused' : calls.length > 0 ? 'calls' : 'done',
      usage: readUsage(this.#usage) ?? estimateUsage(this.#request, this.#said.chars),
      ...(replay !== undefined && { replay }),
    })
    return events
  }

  #replay(calls: readonly number[]): string | undefined {
    const places = new Map<number, Piece>(this.#thoughts)
    for (const [at, text] of this.#texts) places.set(at, { text })
    for (const [call, at] of calls.entries()) places.set(at, { call })
    return toReplay([...places].toSorted(([a], [b]) => a - b).map(([, piece]) => piece))
  }

  #event(data: string): void {
    if (this.done || data === '[DONE]') return
    let json: unknown
    try {
      json = readJson(data)
    } catch {
      return this.#said.skip()
    }
    const parsed = v.safeParse(StreamEvent, json)
    if (!parsed.success) return this.#said.skip()
    const event = parsed.output
    this.#said.seen = true
    const at = event.output_index ?? 0
    switch (event.type) {
      case 'response.output_text.delta':
        return this.#say(at, event.delta ?? '')
      case 'response.refusal.delta':
        this.#refused = true
        return this.#say(at, event.delta ?? '')
      case 'response.reasoning_summary_part.added':
        return (event.summary_index ?? 0) > 0 ? this.#said.think('\n\n') : undefined
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#said.think(event.delta ?? '')
      case 'response.output_item.added':
        if (event.item?.type === 'function_call') this.#open(at, event.item)
        return
      case 'response.function_call_arguments.delta':
        return this.#argue(at, event.delta ?? '')
      case 'response.output_item.done':
        return event.item ? this.#close(at, event.item) : undefined
      case 'response.completed':
      case 'response.incomplete':
        return this.#end(event)
      case 'response.failed':
        throw failureInStream(
          this.#name,
          event.response?.error ?? { message: undefined, code: undefined, type: undefined },
        )
      case 'error':
        throw failureInStream(this.#name, event.error ?? { message: event.message, code: event.code, type: undefined })
    }
  }

  #end({ type, response }: StreamEvent): void {
    this.#usage = response?.usage ?? undefined
    this.#stop =
      type === 'response.completed'
        ? 'done'
        : response?.incomplete_details?.reason === 'content_filter'
          ? 'refused'
          : 'length'
  }

  #say(at: number, text: string): void {
    if (text === '') return
    this.#said.say(text)
    this.#texts.set(at, (this.#texts.get(at) ?? 0) + text.length)
  }

  #open(at: number, { call_id: id, name, arguments: args }: Item): OpenCall {
    const there = this.#calls.get(at)
    if (there) return there
    if (this.#calls.size >= MOST_CALLS) throw this.#said.broken(`made more than ${MOST_CALLS} calls in one answer`)
    const call = { id: id || `call_${at}`, name: name ?? '', args: args ?? '', done: false }
    this.#calls.set(at, call)
    return call
  }
  #argue(at: number, piece: string): void {
    const call = this.#calls.get(at)
    if (!call) return this.#said.skip()
    call.args += piece
    if (call.args.length > MOST_ARGS) throw this.#said.broken(`sent arguments of more than ${MOST_ARGS} characters`)
  }
  #close(at: number, item: Item): void {
    if (item.type === 'function_call') {
      const call = this.#open(at, item)
      if (item.arguments && item.arguments.length <= MOST_ARGS) call.args = item.arguments
      call.done = true
    } else if (item.type === 'reasoning') {
      // Without its sealed part it cannot be given back to a vendor that stores nothing.
      const thought = v.safeParse(Thought, item)
      if (thought.success) this.#thoughts.set(at, thought.output)
    }
  }
}

/** What the vendor counted, or `undefined` when it did not or cannot be believed. */
function readUsage(wire: WireUsage | undefined): Usage | undefined {
  if (wire?.input_tokens == null || wire.output_tokens == null) return undefined
  const total = { input: wire.input_tokens, output: wire.output_tokens }
  if (!plausible(total)) return undefined
  const cachedInput = wire.input_tokens_details?.cached_tokens ?? 0
  const cacheWrite = wire.input_tokens_details?.cache_write_tokens ?? 0
  const thinking = wire.output_tokens_details?.reasoning_tokens
  // Details that do not fit into their total are left out; the total stands.
  const isFitting = plausible({ ...total, cachedInput, cacheWrite })
  return {
    ...total,
    ...(isFitting && { cachedInput, ...(cacheWrite > 0 && { cacheWrite }) }),
    ...(thinking != null && plausible({ ...total, thinking }) && { thinking }),
  }
}
