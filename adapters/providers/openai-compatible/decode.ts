import * as v from 'valibot'
import { isObject } from 'svc/sdk'
import { AnswerDecoder, usageOf } from 'svc/providers'
import type { AnswerEnd, CompletionRequest, StreamedText, Usage } from 'svc/providers'
import { failureInStream } from './errors.ts'
import type { Quirks } from './quirks.ts'
import { Chunk, WireUsage } from './wire.ts'
import type { Message, WireCall } from './wire.ts'

const STOPS: Readonly<Record<string, 'length' | 'refused'>> = {
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  content_filter: 'refused',
  safety: 'refused',
}

/** Reads the chunks of chat completions of OpenAI and of compatible vendors. */
export class Decoder extends AnswerDecoder {
  readonly #inline = new InlineThinking(this.text)
  #lastPlace = -1
  #usage: unknown
  #finish: string | undefined
  /** The field with thinking that the vendor requires back. */
  readonly #replayField: Quirks['replay']
  #reasoning = ''
  readonly #details: unknown[] = []

  constructor(provider: string, request: CompletionRequest, quirks: Pick<Quirks, 'replay'> = {}) {
    super(provider, request)
    this.#replayField = quirks.replay
  }

  protected override handleDone(): void {
    this.isComplete = this.text.hasEvents = true
  }

  protected override handleEvent(json: unknown): void {
    const text = readTextDelta(json)
    if (text !== undefined) {
      this.text.hasEvents = true
      return this.#inline.addText(text)
    }
    const end = readFinish(json)
    if (end !== undefined) {
      this.text.hasEvents = true
      this.#finish = end.finish
      this.#usage = end.usage ?? this.#usage
      return
    }
    const chunk = this.parse(Chunk, json)
    if (!chunk) return
    if (chunk.error) throw failureInStream(this.provider, chunk.error)
    this.#usage = chunk.usage ?? this.#usage
    for (const { index, delta, message, finish_reason } of chunk.choices ?? []) {
      // Only one choice is requested.
      if (index) continue
      const content = delta ?? message
      if (content) this.#read(content)
      if (finish_reason) this.#finish = finish_reason
    }
  }

  protected override end(): AnswerEnd | undefined {
    this.#inline.finish()
    // A few vendors leave out [DONE]. A finish reason proves as well that the answer is complete.
    if (!this.isComplete && !this.#finish) return undefined
    const calls = this.calls.end()
    // The end marker alone is not an answer.
    if (this.#finish === undefined && this.text.total === 0 && calls.length === 0)
      throw this.text.malformed('ended its answer without text or tool calls')
    return {
      stop: STOPS[this.#finish ?? ''] ?? 'done',
      calls,
      usage: readUsage(this.#usage),
      replay: this.#replay(),
    }
  }

  #replay(): string | undefined {
    if (this.#replayField === 'reasoning_content')
      return this.#reasoning === '' ? undefined : JSON.stringify(this.#reasoning)
    return this.#details.length > 0 ? JSON.stringify(this.#details) : undefined
  }

  #read({ content, reasoning_content, reasoning, reasoning_details, refusal, tool_calls }: Message): void {
    const parts = typeof content === 'string' ? undefined : (content ?? undefined)
    const thinking =
      reasoning_content ??
      reasoning ??
      parts?.map(({ thinking }) => thinking?.map((part) => part.text ?? '').join('') ?? '').join('')
    if (this.#replayField === 'reasoning_content') this.#reasoning += thinking ?? ''
    else if (this.#replayField && reasoning_details) this.#details.push(...reasoning_details)
    if (thinking) this.text.addThinking(thinking)
    const text =
      typeof content === 'string' ? content : (parts?.map((part) => part.text ?? '').join('') ?? '') || refusal
    if (text) this.#inline.addText(text)
    if (tool_calls) for (const call of tool_calls) this.#call(call)
  }

  #call({ index, id, function: part }: WireCall): void {
    const place = this.#placeOf(index, id, part?.name)
    const call = this.calls.open(place)
    this.#lastPlace = place
    if (id) call.id ??= id
    // Names are never split; some vendors repeat them with every piece.
    if (part?.name && call.name === '') call.name = part.name
    const args = part?.arguments
    if (typeof args === 'string') this.calls.append(call, args)
    else if (args) {
      call.args = ''
      this.calls.append(call, JSON.stringify(args))
    }
  }

  /** The index of the call a piece belongs to. Without an index, a new id or a new name means a new call. */
  #placeOf(index: number | null | undefined, id: string | null | undefined, name: string | null | undefined): number {
    const next = this.calls.size
    const isOther = (place: number): boolean => {
      const there = this.calls.get(place)?.id
      return Boolean(id) && there !== undefined && id !== there
    }
    if (index == null) {
      const isNew = !this.calls.get(this.#lastPlace) || isOther(this.#lastPlace) || (!id && Boolean(name))
      return isNew ? next : this.#lastPlace
    }
    // Some vendors send index 0 for every call and only distinguish them by id.
    return isOther(index) && name ? next : index
  }
}

/**
 * Nearly every chunk holds text alone. Read by hand: the schema takes half as long as parsing the JSON. Everything else
 * goes through the schema.
 */
function readTextDelta(json: unknown): string | undefined {
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
/** The same for a chunk that holds a finish reason alone. */
function readFinish(json: unknown): { readonly finish: string; readonly usage: unknown } | undefined {
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
  return { finish: choice.finish_reason, usage: json.usage }
}
/** The vendor's counts; `undefined` when they are missing or implausible. */
function readUsage(wire: unknown): Usage | undefined {
  const usage = v.safeParse(WireUsage, wire)
  if (!usage.success) return undefined
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } = usage.output
  return usageOf({
    input: prompt_tokens,
    output: completion_tokens,
    cachedInput: prompt_tokens_details?.cached_tokens ?? usage.output.prompt_cache_hit_tokens,
    thinking: completion_tokens_details?.reasoning_tokens,
  })
}

type TextTarget = Pick<StreamedText, 'addText' | 'addThinking'>
const OPENING_TAG = '<think>'
const CLOSING_TAG = '</think>'

/**
 * Some servers write thinking into the text, as `<think>…</think>` before the answer. The tag only counts at the very
 * beginning: later the model may be writing about the tag.
 */
class InlineThinking {
  readonly #target: TextTarget
  #state: 'before' | 'inside' | 'after' = 'before'
  #buffer = ''
  constructor(target: TextTarget) {
    this.#target = target
  }

  addText(text: string): void {
    if (this.#state === 'after') return this.#target.addText(text)
    this.#buffer += text
    if (this.#state === 'before') this.#readBeginning()
    if (this.#state === 'inside') this.#readThinking()
  }
  /** Passes on what was held back because a tag might have followed. */
  finish(): void {
    const rest = this.#buffer
    this.#buffer = ''
    if (rest === '') return
    if (this.#state === 'inside') this.#target.addThinking(rest)
    else this.#target.addText(rest)
  }

  #readBeginning(): void {
    const start = this.#buffer.trimStart()
    if (start.length < OPENING_TAG.length && OPENING_TAG.startsWith(start)) return
    if (start.startsWith(OPENING_TAG)) {
      this.#state = 'inside'
      this.#buffer = start.slice(OPENING_TAG.length)
    } else {
      this.#state = 'after'
      this.finish()
    }
  }
  #readThinking(): void {
    const end = this.#buffer.indexOf(CLOSING_TAG)
    if (end >= 0) {
      const thought = this.#buffer.slice(0, end)
      const text = this.#buffer.slice(end + CLOSING_TAG.length).trimStart()
      this.#buffer = ''
      this.#state = 'after'
      if (thought.trim() !== '') this.#target.addThinking(thought)
      if (text !== '') this.#target.addText(text)
      return
    }
    // The end of the buffer may be the beginning of the closing tag.
    let kept = Math.min(CLOSING_TAG.length - 1, this.#buffer.length)
    while (kept > 0 && !CLOSING_TAG.startsWith(this.#buffer.slice(-kept))) kept--
    const thought = this.#buffer.slice(0, this.#buffer.length - kept)
    this.#buffer = this.#buffer.slice(this.#buffer.length - kept)
    if (thought !== '') this.#target.addThinking(thought)
  }
}
