import * as v from 'valibot'
import { isObject } from 'svc/sdk'
import { AnswerDecoder, nextCallNumber, usageOf } from 'svc/providers'
import type { AnswerEnd, Usage } from 'svc/providers'
import { failureInStream, promptBlocked } from './errors.ts'
import { writeReplay } from './replay.ts'
import { Chunk, WireUsage } from './wire.ts'
import type { WirePart } from './wire.ts'

/** Finish reasons of an answer that was withheld. Reasons in neither table are ordinary ends. */
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
/** Finish reasons of an answer that could not be parsed: the same request may work again. */
const MALFORMED = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
])

/** Reads the chunks of generateContent. */
export class Decoder extends AnswerDecoder {
  /** All parts of the answer, in their order and with their signatures. */
  readonly #parts: WirePart[] = []
  #usage: unknown
  #finish: string | undefined
  #finishMessage: string | undefined

  protected override handleEvent(json: unknown): void {
    const delta = readTextDelta(json)
    if (delta !== undefined) {
      this.text.hasEvents = true
      this.#usage = delta.usage ?? this.#usage
      this.text.addText(delta.text)
      this.#keep({ text: delta.text })
      return
    }
    const chunk = this.parse(Chunk, json)
    if (!chunk) return
    const { candidates, promptFeedback, usageMetadata, error } = chunk
    if (error) throw failureInStream(this.provider, error)
    if (promptFeedback?.blockReason)
      throw promptBlocked(this.provider, promptFeedback.blockReason, promptFeedback.blockReasonMessage)
    if (usageMetadata) this.#usage = usageMetadata
    for (const { index, content, finishReason, finishMessage } of candidates ?? []) {
      // Only one candidate is requested.
      if (index) continue
      for (const part of content?.parts ?? []) this.#part(part)
      if (finishReason) this.#finish = finishReason
      if (finishMessage) this.#finishMessage = finishMessage
    }
  }

  protected override end(): AnswerEnd | undefined {
    const finish = this.#finish
    if (finish === undefined) return undefined
    if (MALFORMED.has(finish)) {
      const message = this.#finishMessage ? `: ${this.#finishMessage.slice(0, 200)}` : ''
      throw this.text.malformed(`ended its answer with ${finish}${message}`)
    }
    return {
      stop: finish === 'MAX_TOKENS' ? 'length' : REFUSED.has(finish) ? 'refused' : 'done',
      calls: this.calls.end(),
      usage: readUsage(this.#usage),
      replay: writeReplay(this.#parts),
    }
  }

  #part(part: WirePart): void {
    if (part.text && part.thought === true) this.text.addThinking(part.text)
    else if (part.text) this.text.addText(part.text)
    if (part.functionCall) this.#call(part.functionCall)
    this.#keep(part)
  }

  /** Consecutive texts are one part, unless one of them is signed. */
  #keep(part: WirePart): void {
    const last = this.#parts.at(-1)
    const isPlain = (one: WirePart | undefined): boolean =>
      one !== undefined && typeof one.text === 'string' && !one.thought && !one.thoughtSignature && !one.functionCall
    if (isPlain(part) && part.text === '') return
    if (last && isPlain(last) && isPlain(part)) last.text = `${last.text}${part.text}`
    else this.#parts.push(part)
  }

  #call({ id, name, args }: NonNullable<WirePart['functionCall']>): void {
    // Older models send no ids. Results are found by id, so none may be used twice in a conversation.
    const place = this.calls.size
    const isTaken = this.calls.indexes().some((other) => this.calls.get(other)?.id === id)
    this.calls.open(place, {
      id: id && !isTaken ? id : `call_${nextCallNumber(this.request.turns) + place}`,
      name,
      input: args ?? {},
    })
  }
}

/** Nearly every chunk holds text alone. Read by hand: the schema takes longer than parsing the JSON. */
function readTextDelta(json: unknown): { readonly text: string; readonly usage: unknown } | undefined {
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
/** Google's counts; `undefined` when they are missing or implausible. Thoughts are not among the candidates' tokens. */
function readUsage(wire: unknown): Usage | undefined {
  const usage = v.safeParse(WireUsage, wire)
  if (!usage.success) return undefined
  const { promptTokenCount: prompt, candidatesTokenCount: candidates, thoughtsTokenCount: thoughts } = usage.output
  if (prompt == null || (candidates == null && thoughts == null && usage.output.totalTokenCount == null))
    return undefined
  if ((candidates ?? 0) < 0 || (thoughts ?? 0) < 0) return undefined
  return usageOf({
    input: prompt + (usage.output.toolUsePromptTokenCount ?? 0),
    output: (candidates ?? 0) + (thoughts ?? 0),
    cachedInput: usage.output.cachedContentTokenCount,
    thinking: thoughts || undefined,
  })
}
