import * as v from 'valibot'
import { EventStreamReader, readJson, StreamedText } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateUsage, plausible } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ToolCall, Usage } from 'svc/providers'
import { blocked, failureInStream } from './errors.ts'
import { writeReplay } from './replay.ts'
import { Chunk, WireUsage } from './wire.ts'
import type { WirePart } from './wire.ts'

const MOST_CALLS = 256
/** Why an answer ends that was held back. What is in neither table ends it as usual. */
const REFUSED = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'MODEL_ARMOR',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'NO_IMAGE',
  'IMAGE_OTHER',
])
/** The model wrote a call nobody can read: the same request may work again. */
const BROKEN = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
])

/** Turns the pieces of one streamed answer into events. Holds no timers and no connections. */
export class Decoder {
  readonly #name: string
  readonly #request: CompletionRequest
  readonly #said: StreamedText
  readonly #stream = new EventStreamReader(
    ({ data }) => this.#event(data),
    (most) => this.#said.broken(`sent a line of more than ${most} characters`),
  )
  /** Everything said, in the order and with the signatures it came with. */
  readonly #parts: WirePart[] = []
  readonly #calls: ToolCall[] = []
  #usage: unknown
  #finish: string | undefined
  #finishMessage: string | undefined

  constructor(name: string, request: CompletionRequest) {
    this.#name = name
    this.#said = new StreamedText(name)
    this.#request = request
  }

  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#stream.feed(bytes)
    return this.#said.take()
  }

  /** Something in between may answer a request for a stream with the whole at once. */
  async whole(response: OutboundResponse): Promise<readonly CompletionEvent[]> {
    this.#stream.feedWhole(await response.text())
    return this.#said.take()
  }

  /** The rest, ending with `end`. Throws `cut` when the answer stopped before it said why it ends. */
  finish(): readonly CompletionEvent[] {
    this.#stream.finish()
    const finish = this.#said.requireEnd(this.#finish)
    const said = this.#said.take()
    if (BROKEN.has(finish))
      throw this.#said.broken(
        `ended its answer with ${finish}${this.#finishMessage ? `: ${this.#finishMessage.slice(0, 200)}` : ''}`,
      )
    const replay = this.#calls.length > 0 ? writeReplay(this.#parts) : undefined
    const stop =
      finish === 'MAX_TOKENS'
        ? ('length' as const)
        : REFUSED.has(finish)
          ? ('refused' as const)
          : this.#calls.length > 0
            ? ('calls' as const)
            : ('done' as const)
    return [
      ...said,
      ...this.#calls.map((call) => ({ type: 'call' as const, call })),
      {
        type: 'end',
        stop,
        usage: readUsage(this.#usage) ?? estimateUsage(this.#request, this.#said.chars),
        ...(replay !== undefined && { replay }),
      },
    ]
  }

  #event(data: string): void {
    let json: unknown
    try {
      json = readJson(data)
    } catch {
      return this.#said.skip()
    }
    const usual = usualText(json)
    if (usual !== undefined) {
      this.#said.seen = true
      this.#usage = usual.usage ?? this.#usage
      this.#said.say(usual.text)
      this.#keep({ text: usual.text })
      return
    }
    const read = v.safeParse(Chunk, json)
    if (!read.success) return this.#said.skip()
    const { candidates, promptFeedback, usageMetadata, error } = read.output
    this.#said.seen = true
    if (error) throw failureInStream(this.#name, error)
    if (promptFeedback?.blockReason)
      throw blocked(this.#name, promptFeedback.blockReason, promptFeedback.blockReasonMessage)
    if (usageMetadata) this.#usage = usageMetadata
    for (const { index, content, finishReason, finishMessage } of candidates ?? []) {
      // Only one candidate is asked for.
      if (index) continue
      for (const part of content?.parts ?? []) this.#part(part)
      if (finishReason) this.#finish = finishReason
      if (finishMessage) this.#finishMessage = finishMessage
    }
  }

  #part(part: WirePart): void {
    if (part.text && part.thought === true) this.#said.think(part.text)
    else if (part.text) this.#said.say(part.text)
    if (part.functionCall) this.#call(part.functionCall)
    this.#keep(part)
  }

  /** Text that follows text is one part, unless one of them is signed. */
  #keep(part: WirePart): void {
    const last = this.#parts.at(-1)
    const isPlain = (one: WirePart | undefined): boolean =>
      one !== undefined && typeof one.text === 'string' && !one.thought && !one.thoughtSignature && !one.functionCall
    if (isPlain(part) && part.text === '') return
    if (last && isPlain(last) && isPlain(part)) last.text = `${last.text}${part.text}`
    else this.#parts.push(part)
  }

  #call({ id, name, args }: NonNullable<WirePart['functionCall']>): void {
    if (this.#calls.length >= MOST_CALLS) throw this.#said.broken(`made more than ${MOST_CALLS} tool calls at once`)
    this.#said.chars += name.length + JSON.stringify(args ?? {}).length
    // Older models send no ids. Results are found by id, so none may be used twice in a conversation.
    const unique =
      id && !this.#calls.some((call) => call.id === id) ? id : `call_${nextNumber(this.#request) + this.#calls.length}`
    this.#calls.push({ id: unique, name, args: args ?? {} })
  }
}

/** The text of a chunk that says nothing else, as nearly all do. Looked at by hand: a schema costs more than the parsing of the JSON. */
function usualText(json: unknown): { readonly text: string; readonly usage: unknown } | undefined {
  if (
    !isObject(json) ||
    json.error ||
    json.promptFeedback ||
    !Array.isArray(json.candidates) ||
    json.candidates.length !== 1
  )
    return undefined
  const candidate: unknown = json.candidates[0]
  if (!isObject(candidate) || candidate.index || candidate.finishReason || !isObject(candidate.content))
    return undefined
  const { parts } = candidate.content
  if (!Array.isArray(parts) || parts.length !== 1) return undefined
  const part: unknown = parts[0]
  if (!isObject(part) || part.thought || part.thoughtSignature || part.functionCall || typeof part.text !== 'string')
    return undefined
  return { text: part.text, usage: json.usageMetadata }
}
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** One more than the highest number that is in use. */
function nextNumber({ turns }: CompletionRequest): number {
  let highest = 0
  for (const turn of turns)
    if (turn.role === 'assistant')
      for (const { id } of turn.calls) highest = Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0))
  return highest + 1
}

/** What Google counted, or `undefined` when it did not or cannot be believed. Its candidates do not include the thoughts. */
function readUsage(wire: unknown): Usage | undefined {
  const read = v.safeParse(WireUsage, wire)
  if (!read.success || read.output.promptTokenCount == null) return undefined
  const {
    promptTokenCount,
    candidatesTokenCount,
    thoughtsTokenCount,
    totalTokenCount,
    cachedContentTokenCount: cached,
    toolUsePromptTokenCount,
  } = read.output
  if (candidatesTokenCount == null && thoughtsTokenCount == null && totalTokenCount == null) return undefined
  const thinking = thoughtsTokenCount ?? 0
  const total = {
    input: promptTokenCount + (toolUsePromptTokenCount ?? 0),
    output: (candidatesTokenCount ?? 0) + thinking,
  }
  if (!plausible({ ...total, thinking }) || (candidatesTokenCount ?? 0) < 0) return undefined
  return {
    ...total,
    ...(cached != null && plausible({ ...total, cachedInput: cached }) && { cachedInput: cached }),
    ...(thinking > 0 && { thinking }),
  }
}
