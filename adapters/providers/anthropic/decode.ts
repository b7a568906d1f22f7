import * as v from 'valibot'
import { isObject } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { BlockDecoder, usageOf } from 'svc/providers'
import type { AnswerEnd, CompletionEvent, ThinkingBlock } from 'svc/providers'
import { failureInStream } from './errors.ts'
import { events, Message, Replay, WireUsage } from './wire.ts'
import type { Block, Delta, Thought } from './wire.ts'

// Decision: `pause_turn` comes with tools that the vendor runs itself, which an agent only has through `extra_params`.
// The answer is incomplete.
const STOPS: Readonly<Record<string, 'length' | 'refused'>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  pause_turn: 'length',
  refusal: 'refused',
}

/** Reads the events of the Messages API: numbered blocks, each with its deltas. */
export class Decoder extends BlockDecoder {
  #usage: WireUsage = {}
  #stop: string | undefined

  /** Other vendors that speak this format may answer a request for a stream with the whole message at once. */
  override async decodeWhole(response: OutboundResponse): Promise<readonly CompletionEvent[]> {
    const message = v.safeParse(Message, await response.json())
    if (!message.success) throw this.text.malformed('sent an answer that cannot be read')
    for (const [index, block] of message.output.content.entries()) {
      this.#start(index, block)
      if (block.type === 'thinking' && 'thinking' in block) this.addThinking(index, block.thinking)
      if (block.type === 'text' && 'text' in block) this.addText(index, block.text)
    }
    this.#count(message.output.usage)
    this.#stop = message.output.stop_reason ?? undefined
    this.text.hasEvents = this.isComplete = true
    return this.text.take()
  }

  protected override handleEvent(json: unknown): void {
    if (!isObject(json)) return this.text.skip()
    const text = readTextDelta(json)
    if (text) return this.addText(text.index, text.text)
    const { type } = json
    switch (type) {
      case 'message_start':
        return this.#count(this.parse(events.message_start, json)?.message.usage)
      case 'content_block_start': {
        const event = this.parse(events.content_block_start, json)
        return event && this.#start(event.index, event.content_block)
      }
      case 'content_block_delta': {
        const event = this.parse(events.content_block_delta, json)
        return event && this.#delta(event.index, event.delta)
      }
      case 'message_delta': {
        const event = this.parse(events.message_delta, json)
        this.#count(event?.usage)
        this.#stop = event?.delta.stop_reason ?? this.#stop
        return
      }
      case 'message_stop':
        this.text.hasEvents = this.isComplete = true
        return
      case 'error': {
        const event = this.parse(events.error, json)
        if (event) throw failureInStream(this.provider, event.error)
        return
      }
      // `ping`, `content_block_stop` and what future versions add.
      default:
        if (typeof type !== 'string') this.text.skip()
    }
  }

  protected override end(): AnswerEnd | undefined {
    // A stop reason proves that the answer is complete as well as the last event does.
    if (!this.isComplete && !this.#stop) return undefined
    const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } = this.#usage
    return {
      stop: STOPS[this.#stop ?? ''] ?? 'done',
      calls: this.calls.end(),
      usage: usageOf({
        uncachedInput: input_tokens,
        output: output_tokens,
        // Zero tokens are left out.
        cachedInput: cache_read_input_tokens || undefined,
        cacheWrite: cache_creation_input_tokens || undefined,
        thinking: this.#usage.output_tokens_details?.thinking_tokens || undefined,
      }),
      replay: Replay.write(this.pieces(toThought)),
    }
  }

  #start(index: number, block: Block): void {
    if (block.type === 'text') this.openBlock(index, { kind: 'text', chars: 0 })
    else if (block.type === 'thinking' && 'signature' in block)
      this.openBlock(index, { kind: 'thinking', text: '', signature: block.signature })
    else if (block.type === 'redacted_thinking' && 'data' in block)
      this.openBlock(index, { kind: 'redacted', data: block.data })
    else if (block.type === 'tool_use' && 'id' in block)
      this.openCall(index, { id: block.id, name: block.name, input: block.input })
    // Blocks of tools that the vendor runs itself.
    else this.openBlock(index, { kind: 'ignored' })
  }

  #delta(index: number, delta: Delta): void {
    if ('text' in delta) this.addText(index, delta.text)
    else if ('thinking' in delta) this.addThinking(index, delta.thinking)
    else if ('partial_json' in delta) this.addArguments(index, delta.partial_json)
    else if ('signature' in delta) {
      const block = this.thinkingAt(index)
      if (block) block.signature = delta.signature
    }
  }

  /** Counts are totals. One that a later event leaves out stays. */
  #count(usage: unknown): void {
    const counts = v.safeParse(WireUsage, usage)
    if (counts.success)
      for (const [name, count] of Object.entries(counts.output))
        if (count !== null && count !== undefined) this.#usage = { ...this.#usage, [name]: count }
  }
}

/** Nearly every event is a text delta. Read by hand: the schema takes longer than parsing the JSON. */
function readTextDelta({ type, delta, index }: Record<string, unknown>): { index: number; text: string } | undefined {
  if (type !== 'content_block_delta' || !isObject(delta) || delta['type'] !== 'text_delta') return undefined
  const { text } = delta
  return typeof text === 'string' && typeof index === 'number' ? { index, text } : undefined
}

function toThought(block: ThinkingBlock): Thought {
  return block.kind === 'redacted'
    ? { type: 'redacted_thinking', data: block.data }
    : { type: 'thinking', thinking: block.text, signature: block.signature ?? '' }
}
