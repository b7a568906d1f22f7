import * as v from 'valibot'
import { EventStreamReader, readJson, StreamedText } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateUsage, plausible, readArgs } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ToolCall, Usage } from 'svc/providers'
import { failureInStream } from './errors.ts'
import { InlineThinking } from './inline-thinking.ts'
import type { Quirks } from './quirks.ts'
import { Chunk, WireUsage } from './wire.ts'
import type { Said, WireCall } from './wire.ts'

/** Arguments of one call that grow over this are a fault of the other side. In characters. */
const MOST_ARGS = 8_388_608
const MOST_CALLS = 256

interface OpenCall {
  id: string | undefined
  name: string
  args: string
}

/**
 * Turns the pieces of one streamed answer into events. `feed` and `finish` return what they made; text that arrived in one piece of the
 * network is one event. Holds no timers and no connections.
 */
export class Decoder {
  readonly #name: string
  readonly #request: CompletionRequest
  readonly #said: StreamedText
  readonly #stream = new EventStreamReader(
    ({ data }) => this.#event(data),
    (most) => this.#said.broken(`sent a line of more than ${most} characters`),
  )
  readonly #inline: InlineThinking
  readonly #calls = new Map<number, OpenCall>()
  #lastIndex = -1
  #usage: WireUsage | undefined
  #finish: string | undefined
  #sentinel = false
  /** What the model thought, kept only for a vendor that wants it back. */
  readonly #replayed: Quirks['replay']
  #reasoning = ''
  readonly #details: unknown[] = []

  constructor(name: string, request: CompletionRequest, quirks: Pick<Quirks, 'replay'> = {}) {
    this.#name = name
    this.#said = new StreamedText(name)
    this.#inline = new InlineThinking(this.#said)
    this.#request = request
    this.#replayed = quirks.replay
  }

  /** Whether the end marker was read: the rest of the stream is of no interest. */
  get done(): boolean {
    return this.#sentinel
  }

  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#stream.feed(bytes)
    return this.#said.take()
  }

  /** A few answer a request for a stream with the whole at once. */
  async whole(response: OutboundResponse): Promise<readonly CompletionEvent[]> {
    this.#stream.feedWhole(await response.text())
    this.#inline.finish()
    return this.#said.take()
  }

  /** The rest, ending with `end`. Throws `cut` when the answer stopped before its end marker. */
  finish(): readonly CompletionEvent[] {
    this.#stream.finish()
    this.#inline.finish()
    // A few vendors leave out [DONE]; a reason to finish proves as well that nothing is missing.
    this.#said.requireEnd(this.#sentinel || this.#finish)
    const said = this.#said.take()
    const calls = this.#endCalls()
    // The end marker alone, without a word or a reason, is no answer.
    if (this.#finish === undefined && this.#said.chars === 0 && calls.length === 0)
      throw this.#said.broken('ended its answer without having said anything')
    return [
      ...said,
      ...calls.map((call) => ({ type: 'call' as const, call })),
      {
        type: 'end',
        stop: stopOf(this.#finish, calls.length > 0),
        usage: readUsage(this.#usage) ?? estimateUsage(this.#request, this.#said.chars),
        ...(calls.length > 0 && this.#replay()),
      },
    ]
  }

  #replay(): { readonly replay?: string } {
    if (this.#replayed === 'reasoning_content' && this.#reasoning !== '')
      return { replay: JSON.stringify(this.#reasoning) }
    return this.#replayed === 'reasoning_details' && this.#details.length > 0
      ? { replay: JSON.stringify(this.#details) }
      : {}
  }

  #event(data: string): void {
    if (this.#sentinel) return
    if (data === '[DONE]') {
      this.#sentinel = true
      this.#said.seen = true
      return
    }
    let json: unknown
    try {
      json = readJson(data)
    } catch {
      return this.#said.skip()
    }
    const text = usualText(json)
    if (text !== undefined) {
      this.#said.seen = true
      this.#inline.say(text)
      return
    }
    const end = usualEnd(json)
    if (end !== undefined) {
      this.#said.seen = true
      this.#finish = end.finish
      if (end.usage) this.#usage = end.usage
      return
    }
    const parsed = v.safeParse(Chunk, json)
    if (!parsed.success) return this.#said.skip()
    this.#said.seen = true
    const chunk = parsed.output
    if (chunk.error) throw failureInStream(this.#name, chunk.error)
    if (chunk.usage) this.#usage = chunk.usage
    for (const { index, delta, message, finish_reason } of chunk.choices ?? []) {
      // Only one choice is asked for.
      if (index) continue
      const said = delta ?? message
      if (said) this.#read(said)
      if (finish_reason) this.#finish = finish_reason
    }
  }

  #read({ content, reasoning_content, reasoning, reasoning_details, refusal, tool_calls }: Said): void {
    const parts = typeof content === 'string' ? undefined : (content ?? undefined)
    const thinking =
      reasoning_content ??
      reasoning ??
      parts?.map(({ thinking }) => thinking?.map((part) => part.text ?? '').join('') ?? '').join('')
    if (this.#replayed === 'reasoning_content') this.#reasoning += thinking ?? ''
    else if (this.#replayed && reasoning_details) this.#details.push(...reasoning_details)
    if (thinking) this.#said.think(thinking)
    const text =
      typeof content === 'string' ? content : (parts?.map((part) => part.text ?? '').join('') ?? '') || refusal
    if (text) this.#inline.say(text)
    if (tool_calls) for (const call of tool_calls) this.#call(call)
  }

  #call({ index, id, function: part }: WireCall): void {
    // Without a number, a new id or a new name means a new call.
    const last = this.#calls.get(this.#lastIndex)
    let at =
      index ??
      (last === undefined || (id && last.id !== undefined && id !== last.id) || (!id && part?.name)
        ? this.#calls.size
        : this.#lastIndex)
    // Some number every call with 0 and tell them apart by their id alone.
    const there = this.#calls.get(at)
    if (there && id && there.id !== undefined && id !== there.id && part?.name) at = this.#calls.size
    let call = this.#calls.get(at)
    if (!call) {
      if (this.#calls.size >= MOST_CALLS) throw this.#said.broken(`made more than ${MOST_CALLS} tool calls at once`)
      this.#calls.set(at, (call = { id: undefined, name: '', args: '' }))
    }
    this.#lastIndex = at
    if (id) call.id ??= id
    // A name comes whole; some repeat it with every piece.
    if (part?.name && call.name === '') call.name = part.name
    const args = part?.arguments
    if (typeof args === 'string') call.args += args
    else if (args) call.args = JSON.stringify(args)
    if (call.args.length > MOST_ARGS) throw this.#said.broken('sent arguments of a tool call that have no end')
  }

  #endCalls(): readonly ToolCall[] {
    const used = new Set<string>()
    return [...this.#calls.entries()]
      .sort(([a], [b]) => a - b)
      .map(([at, { id, name, args }]) => {
        this.#said.chars += name.length + args.length
        // An answer to a call is found by its id, so it has to be there and be unique.
        let unique = id ?? `call_${at}`
        for (let copy = 2; used.has(unique); copy++) unique = `${id ?? `call_${at}`}_${copy}`
        used.add(unique)
        return { id: unique, name, args: readArgs(args) }
      })
  }
}

/**
 * The text of a chunk that holds text and nothing else, as nearly all do. Looked at by hand: the schema takes half as long again as the
 * parsing of the JSON. Whatever is not exactly this goes through the schema.
 */
function usualText(json: unknown): string | undefined {
  if (!isObject(json) || json.usage || json.error || !Array.isArray(json.choices) || json.choices.length !== 1)
    return undefined
  const choice: unknown = json.choices[0]
  if (!isObject(choice) || choice.index || choice.finish_reason || !isObject(choice.delta)) return undefined
  const { content, tool_calls, reasoning_content, reasoning, reasoning_details, refusal } = choice.delta
  return typeof content === 'string' &&
    !tool_calls &&
    !reasoning_content &&
    !reasoning &&
    !reasoning_details &&
    !refusal
    ? content
    : undefined
}
/** The same for the chunk that says why the answer ends, and nothing else. */
function usualEnd(json: unknown): { readonly finish: string; readonly usage: WireUsage | undefined } | undefined {
  if (!isObject(json) || json.error || !Array.isArray(json.choices) || json.choices.length !== 1) return undefined
  const choice: unknown = json.choices[0]
  if (
    !isObject(choice) ||
    choice.index ||
    choice.message ||
    typeof choice.finish_reason !== 'string' ||
    choice.finish_reason === '' ||
    !isObject(choice.delta)
  )
    return undefined
  for (const _ in choice.delta) return undefined
  if (!json.usage) return { finish: choice.finish_reason, usage: undefined }
  const usage = v.safeParse(WireUsage, json.usage)
  return usage.success ? { finish: choice.finish_reason, usage: usage.output } : undefined
}
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

function stopOf(finish: string | undefined, called: boolean): 'done' | 'length' | 'calls' | 'refused' {
  if (finish === 'length' || finish === 'max_tokens' || finish === 'model_length') return 'length'
  if (finish === 'content_filter' || finish === 'safety') return 'refused'
  return called ? 'calls' : 'done'
}

/** What the vendor counted, or `undefined` when it did not or cannot be believed. */
function readUsage(wire: WireUsage | undefined): Usage | undefined {
  if (wire?.prompt_tokens == null || wire.completion_tokens == null) return undefined
  const cached = wire.prompt_tokens_details?.cached_tokens ?? wire.prompt_cache_hit_tokens
  const thinking = wire.completion_tokens_details?.reasoning_tokens
  const total = { input: wire.prompt_tokens, output: wire.completion_tokens }
  if (!plausible(total)) return undefined
  // Details that do not fit into their total are left out; the total stands.
  return {
    ...total,
    ...(cached != null && plausible({ ...total, cachedInput: cached }) && { cachedInput: cached }),
    ...(thinking != null && plausible({ ...total, thinking }) && { thinking }),
  }
}
