import * as v from 'valibot'
import { readJson, StreamedText } from 'svc/sdk'
import { estimateUsage, plausible, readArgs } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ToolCall, Usage } from 'svc/providers'
import { failureInStream } from './errors.ts'
import { FrameReader } from './frames.ts'
import type { Frame } from './frames.ts'
import { toReplay } from './replay.ts'
import type { Piece } from './replay.ts'
import { events } from './wire.ts'
import type { Delta, WireUsage } from './wire.ts'

const MOST_BLOCK = 8_388_608
const MOST_BLOCKS = 1024

type Open =
  | { readonly kind: 'text'; chars: number }
  | { readonly kind: 'thinking'; text: string; signature: string | undefined }
  | { readonly kind: 'redacted'; data: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string; args: string }

/**
 * Turns the pieces of one streamed answer into events. `feed` and `finish` return what they made; text that arrived in one piece of the
 * network is one event. Holds no timers and no connections.
 */
export class Decoder {
  readonly #name: string
  readonly #request: CompletionRequest
  readonly #said: StreamedText
  /** A damaged frame is a broken stream at once: nothing tells where the next begins. */
  readonly #frames = new FrameReader((what) => this.#said.broken(what))
  readonly #blocks: (Open | undefined)[] = []
  #usage: WireUsage | undefined
  #stop: string | undefined
  #ended = false

  constructor(name: string, request: CompletionRequest) {
    this.#name = name
    this.#said = new StreamedText(name)
    this.#request = request
  }

  /** Whether the last event was read: the rest of the stream is of no interest. */
  get done(): boolean {
    return this.#ended
  }

  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#frames.feed(bytes, (frame) => {
      this.#frame(frame)
    })
    return this.#said.take()
  }

  /** The rest, ending with `end`. Throws `cut` when the answer stopped before its reason to stop. */
  finish(): readonly CompletionEvent[] {
    // Half a frame is an answer that was begun.
    this.#said.seen ||= this.#frames.open
    const stop = this.#said.requireEnd(this.#stop)
    // The model wrote what its own vendor could not read; the next answer may be better.
    if (stop.startsWith('malformed_')) throw this.#said.broken('could not read what its model wrote')
    const calls: ToolCall[] = []
    const pieces: Piece[] = []
    for (const block of this.#blocks) {
      if (block?.kind === 'text') pieces.push({ text: block.chars })
      else if (block?.kind === 'thinking')
        pieces.push({
          reasoningText: { text: block.text, ...(block.signature !== undefined && { signature: block.signature }) },
        })
      else if (block?.kind === 'redacted') pieces.push({ redactedContent: block.data })
      else if (block?.kind === 'call') {
        pieces.push({ call: calls.length })
        this.#said.chars += block.name.length + block.args.length
        calls.push({ id: block.id || `call_${calls.length}`, name: block.name, args: readArgs(block.args) })
      }
    }
    const replay = calls.length > 0 ? toReplay(pieces) : undefined
    return [
      ...this.#said.take(),
      ...calls.map((call) => ({ type: 'call' as const, call })),
      {
        type: 'end',
        stop: stopOf(stop, calls.length > 0),
        usage: readUsage(this.#usage) ?? estimateUsage(this.#request, this.#said.chars),
        ...(replay !== undefined && { replay }),
      },
    ]
  }

  #frame({ headers, payload }: Frame): void {
    if (this.#ended) return
    const kind = headers[':message-type']
    if (kind === 'exception' || kind === 'error')
      throw failureInStream(
        this.#name,
        headers[':exception-type'] ?? headers[':error-code'] ?? '',
        headers[':error-message'] ?? payload.toString(),
      )
    let json: unknown
    try {
      json = readJson(payload.toString())
    } catch {
      return this.#said.skip()
    }
    const type = headers[':event-type']
    // Nearly every event is this; looked at by hand, because the schema takes longer than the parsing of the JSON.
    if (
      type === 'contentBlockDelta' &&
      isObject(json) &&
      isObject(json['delta']) &&
      typeof json['delta']['text'] === 'string' &&
      typeof json['contentBlockIndex'] === 'number'
    ) {
      return this.#write(json['contentBlockIndex'], json['delta']['text'])
    }
    switch (type) {
      case 'messageStart':
        return this.#read(events.messageStart, json, () => {})
      case 'contentBlockStart':
        return this.#read(events.contentBlockStart, json, ({ contentBlockIndex: at, start }) => {
          if (start?.toolUse)
            this.#place(at, { kind: 'call', id: start.toolUse.toolUseId, name: start.toolUse.name, args: '' })
        })
      case 'contentBlockDelta':
        return this.#read(events.contentBlockDelta, json, ({ contentBlockIndex: at, delta }) => {
          this.#delta(at, delta)
        })
      case 'messageStop':
        return this.#read(events.messageStop, json, ({ stopReason }) => {
          this.#stop = stopReason
        })
      case 'metadata':
        return this.#read(events.metadata, json, ({ usage }) => {
          this.#usage = usage ?? undefined
          this.#ended = this.#stop !== undefined
        })
      // `contentBlockStop` and what future versions add.
      default:
    }
  }

  #read<S extends v.GenericSchema>(schema: S, json: unknown, use: (event: v.InferOutput<S>) => void): void {
    const read = v.safeParse(schema, json)
    if (!read.success) return this.#said.skip()
    this.#said.seen = true
    use(read.output)
  }

  #write(at: number, text: string): void {
    const block = this.#blocks[at] ?? this.#place(at, { kind: 'text', chars: 0 })
    if (block.kind !== 'text') return this.#said.skip()
    this.#said.seen = true
    block.chars += text.length
    this.#said.say(text)
  }

  #delta(at: number, delta: Delta): void {
    if ('toolUse' in delta && isInput(delta.toolUse)) {
      const block = this.#blocks[at]
      if (block?.kind !== 'call') return this.#said.skip()
      block.args += delta.toolUse.input
      if (block.args.length > MOST_BLOCK) throw this.#said.broken('sent arguments of a tool call that have no end')
      return
    }
    // What the model makes beside text, such as images, is nothing for the agent.
    if (!('reasoningContent' in delta) || !isObject(delta.reasoningContent)) return
    const { text, signature, redactedContent } = delta.reasoningContent
    if (typeof redactedContent === 'string') {
      const block = this.#blocks[at] ?? this.#place(at, { kind: 'redacted', data: '' })
      if (block.kind === 'redacted') block.data += redactedContent
      return
    }
    const block = this.#blocks[at] ?? this.#place(at, { kind: 'thinking', text: '', signature: undefined })
    if (block.kind !== 'thinking') return this.#said.skip()
    if (typeof signature === 'string') block.signature = (block.signature ?? '') + signature
    if (typeof text !== 'string' || text === '') return
    block.text += text
    this.#said.think(text)
    if (block.text.length > MOST_BLOCK) throw this.#said.broken('sent thinking that has no end')
  }

  #place(at: number, block: Open): Open {
    if (!Number.isInteger(at) || at < 0 || at >= MOST_BLOCKS)
      throw this.#said.broken(`sent an answer of more than ${MOST_BLOCKS} blocks`)
    return (this.#blocks[at] = block)
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
const isInput = (value: unknown): value is { readonly input: string } =>
  isObject(value) && typeof value['input'] === 'string'

const stops: Readonly<Record<string, 'length' | 'refused'>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  guardrail_intervened: 'refused',
  content_filtered: 'refused',
}
function stopOf(stop: string, called: boolean): 'done' | 'length' | 'calls' | 'refused' {
  return stops[stop] ?? (called ? 'calls' : 'done')
}

/** What the vendor counted, or `undefined` when it did not or cannot be believed. Its `inputTokens` are those beside the cache. */
function readUsage(wire: WireUsage | undefined): Usage | undefined {
  if (wire?.inputTokens == null || wire.outputTokens == null || wire.inputTokens < 0) return undefined
  const cachedInput = wire.cacheReadInputTokens ?? 0
  const cacheWrite = wire.cacheWriteInputTokens ?? 0
  const usage: Usage = {
    input: wire.inputTokens + cachedInput + cacheWrite,
    output: wire.outputTokens,
    ...(cachedInput !== 0 && { cachedInput }),
    ...(cacheWrite !== 0 && { cacheWrite }),
  }
  return plausible(usage) ? usage : undefined
}
