import * as v from 'valibot'
import { EventStreamReader, readJson, StreamedText } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateUsage, plausible, readArgs } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ToolCall, Usage } from 'svc/providers'
import { failureInStream } from './errors.ts'
import { toReplay } from './replay.ts'
import type { Piece } from './replay.ts'
import { events, Message } from './wire.ts'
import type { Block, Delta, WireUsage } from './wire.ts'

/** Arguments of one call, or one piece of thinking, that grow over this are a fault of the other side. In characters. */
const MOST_BLOCK = 8_388_608
const MOST_BLOCKS = 1024

type Open =
  | { readonly kind: 'text'; chars: number }
  | { readonly kind: 'thinking'; thinking: string; signature: string }
  | { readonly kind: 'redacted'; readonly data: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string; readonly input: unknown; args: string }

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
  /** By their number in the answer. */
  readonly #blocks: (Open | undefined)[] = []
  #usage: WireUsage = {}
  #stop: string | undefined
  #ended = false

  constructor(name: string, request: CompletionRequest) {
    this.#name = name
    this.#said = new StreamedText(name)
    this.#request = request
  }

  /** Whether the end marker was read: the rest of the stream is of no interest. */
  get done(): boolean {
    return this.#ended
  }

  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#stream.feed(bytes)
    return this.#said.take()
  }

  /** The rest, ending with `end`. Throws `cut` when the answer stopped before its end marker. */
  finish(): readonly CompletionEvent[] {
    this.#stream.finish()
    // The reason to stop proves as well that nothing of the answer is missing.
    this.#said.requireEnd(this.#ended || this.#stop)
    return this.#end(this.#said.take())
  }

  /** Others that speak this wire answer a request for a stream with the whole at once. */
  async whole(response: OutboundResponse): Promise<readonly CompletionEvent[]> {
    const read = v.safeParse(Message, await response.json())
    if (!read.success) throw this.#said.broken('sent an answer that cannot be read')
    for (const [index, block] of read.output.content.entries()) {
      this.#start(index, block)
      if (block.type === 'thinking' && 'thinking' in block)
        this.#delta(index, { type: 'thinking_delta', thinking: block.thinking })
      if (block.type === 'text' && 'text' in block) this.#delta(index, { type: 'text_delta', text: block.text })
    }
    this.#count(read.output.usage)
    this.#stop = read.output.stop_reason ?? undefined
    this.#said.seen = this.#ended = true
    return this.#said.take()
  }

  #event(data: string): void {
    if (this.#ended) return
    let json: unknown
    try {
      json = readJson(data)
    } catch {
      return this.#said.skip()
    }
    if (!isObject(json)) return this.#said.skip()
    // Nearly every event is this; looked at by hand, because the schema takes longer than the parsing of the JSON.
    const { type, delta, index } = json
    if (
      type === 'content_block_delta' &&
      isObject(delta) &&
      delta['type'] === 'text_delta' &&
      typeof delta['text'] === 'string' &&
      typeof index === 'number'
    ) {
      const block = this.#blocks[index]
      if (block?.kind !== 'text') return this.#said.skip()
      block.chars += delta['text'].length
      this.#said.say(delta['text'])
      return
    }
    switch (type) {
      case 'message_start':
        return this.#read(events.message_start, json, ({ message }) => {
          this.#count(message.usage)
        })
      case 'content_block_start':
        return this.#read(events.content_block_start, json, (event) => {
          this.#start(event.index, event.content_block)
        })
      case 'content_block_delta':
        return this.#read(events.content_block_delta, json, (event) => {
          this.#delta(event.index, event.delta)
        })
      case 'message_delta':
        return this.#read(events.message_delta, json, (event) => {
          this.#count(event.usage)
          this.#stop = event.delta.stop_reason ?? this.#stop
        })
      case 'message_stop':
        this.#said.seen = this.#ended = true
        return
      case 'error':
        return this.#read(events.error, json, ({ error }) => {
          throw failureInStream(this.#name, error)
        })
      // `ping`, `content_block_stop` and what future versions add.
      default:
        if (typeof type !== 'string') this.#said.skip()
    }
  }

  #read<S extends v.GenericSchema>(schema: S, json: unknown, use: (event: v.InferOutput<S>) => void): void {
    const read = v.safeParse(schema, json)
    if (!read.success) return this.#said.skip()
    this.#said.seen = true
    use(read.output)
  }

  #start(index: number, block: Block): void {
    if (!Number.isInteger(index) || index < 0 || index >= MOST_BLOCKS)
      throw this.#said.broken(`sent an answer of more than ${MOST_BLOCKS} blocks`)
    if (block.type === 'text') this.#blocks[index] = { kind: 'text', chars: 0 }
    else if (block.type === 'thinking' && 'signature' in block)
      this.#blocks[index] = { kind: 'thinking', thinking: '', signature: block.signature }
    else if (block.type === 'redacted_thinking' && 'data' in block)
      this.#blocks[index] = { kind: 'redacted', data: block.data }
    else if (block.type === 'tool_use' && 'id' in block)
      this.#blocks[index] = { kind: 'call', id: block.id, name: block.name, input: block.input, args: '' }
    // What the vendor does itself has its own kinds of blocks, which are nothing for the agent.
  }

  #delta(index: number, delta: Delta): void {
    const block = this.#blocks[index]
    if (!block) return
    if ('text' in delta && block.kind === 'text') {
      block.chars += delta.text.length
      this.#said.say(delta.text)
    } else if ('thinking' in delta && block.kind === 'thinking') {
      block.thinking += delta.thinking
      this.#said.think(delta.thinking)
      if (block.thinking.length > MOST_BLOCK) throw this.#said.broken('sent thinking that has no end')
    } else if ('signature' in delta && block.kind === 'thinking') block.signature = delta.signature
    else if ('partial_json' in delta && block.kind === 'call') {
      block.args += delta.partial_json
      if (block.args.length > MOST_BLOCK) throw this.#said.broken('sent arguments of a tool call that have no end')
    }
  }

  #end(said: readonly CompletionEvent[]): readonly CompletionEvent[] {
    const calls: ToolCall[] = []
    const pieces: Piece[] = []
    for (const block of this.#blocks) {
      if (block?.kind === 'text') pieces.push({ text: block.chars })
      else if (block?.kind === 'thinking')
        pieces.push({ type: 'thinking', thinking: block.thinking, signature: block.signature })
      else if (block?.kind === 'redacted') pieces.push({ type: 'redacted_thinking', data: block.data })
      else if (block?.kind === 'call') {
        pieces.push({ call: calls.length })
        this.#said.chars += block.name.length + block.args.length
        calls.push({
          id: block.id || `call_${calls.length}`,
          name: block.name,
          args: block.args.trim() === '' ? (block.input ?? {}) : readArgs(block.args),
        })
      }
    }
    const replay = calls.length > 0 ? toReplay(pieces) : undefined
    return [
      ...said,
      ...calls.map((call) => ({ type: 'call' as const, call })),
      {
        type: 'end',
        stop: stopOf(this.#stop, calls.length > 0),
        usage: readUsage(this.#usage) ?? estimateUsage(this.#request, this.#said.chars),
        ...(replay !== undefined && { replay }),
      },
    ]
  }

  /** The counts are totals; a later event that leaves one out does not take it back. */
  #count(usage: WireUsage | null | undefined): void {
    if (usage)
      this.#usage = {
        ...this.#usage,
        ...Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== null && count !== undefined)),
      }
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

// Decision: `pause_turn` is said of tools the vendor runs itself, which an agent only has through `extra_params`; the answer is not all of it.
const stops: Readonly<Record<string, 'done' | 'length' | 'refused'>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  pause_turn: 'length',
  refusal: 'refused',
}
function stopOf(stop: string | undefined, called: boolean): 'done' | 'length' | 'calls' | 'refused' {
  return stops[stop ?? ''] ?? (called ? 'calls' : 'done')
}

/** What the vendor counted, or `undefined` when it did not or cannot be believed. Its `input_tokens` are those beside the cache. */
function readUsage({
  input_tokens,
  output_tokens,
  cache_read_input_tokens,
  cache_creation_input_tokens,
  output_tokens_details,
}: WireUsage): Usage | undefined {
  if (input_tokens == null || output_tokens == null) return undefined
  const cachedInput = cache_read_input_tokens ?? 0
  const cacheWrite = cache_creation_input_tokens ?? 0
  const thinking = output_tokens_details?.thinking_tokens
  const total: Usage = {
    input: input_tokens + cachedInput + cacheWrite,
    output: output_tokens,
    ...(cachedInput !== 0 && { cachedInput }),
    ...(cacheWrite !== 0 && { cacheWrite }),
  }
  if (!plausible(total) || input_tokens < 0) return undefined
  return thinking != null && thinking > 0 && plausible({ ...total, thinking }) ? { ...total, thinking } : total
}
