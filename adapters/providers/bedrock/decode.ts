import { isObject } from 'svc/sdk'
import { BlockDecoder, usageOf } from 'svc/providers'
import type { AnswerEnd, AnswerReader, ThinkingBlock } from 'svc/providers'
import * as v from 'valibot'
import { failureInStream } from './errors.ts'
import { FrameReader } from './frames.ts'
import type { Frame } from './frames.ts'
import { events, Replay, WireUsage } from './wire.ts'
import type { Delta, Thought } from './wire.ts'

const STOPS: Readonly<Record<string, 'length' | 'refused'>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  guardrail_intervened: 'refused',
  content_filtered: 'refused',
}

/** Reads the events of ConverseStream: numbered blocks, most of which begin with their first delta. */
export class Decoder extends BlockDecoder {
  #usage: unknown
  #stop: string | undefined

  /** A single damaged frame makes the stream malformed: where the next frame begins is unknown. */
  protected override openReader(): AnswerReader {
    const frames = new FrameReader((what) => this.text.malformed(what))
    return {
      feed: (bytes) => frames.feed(bytes, (frame) => this.#frame(frame)),
      // An incomplete frame is an answer that was cut off, not one without events.
      finish: () => {
        this.text.hasEvents ||= frames.hasPartialFrame
      },
    }
  }

  #frame({ headers, payload }: Frame): void {
    if (this.isComplete) return
    const kind = headers[':message-type']
    if (kind === 'exception' || kind === 'error')
      throw failureInStream(
        this.provider,
        headers[':exception-type'] ?? headers[':error-code'] ?? '',
        headers[':error-message'] ?? payload,
      )
    this.handleData(payload, headers[':event-type'])
  }

  protected override handleEvent(json: unknown, name: string | undefined): void {
    // Nearly every event is this; read by hand, because the schema takes longer than the parsing of the JSON.
    if (
      name === 'contentBlockDelta' &&
      isObject(json) &&
      isObject(json['delta']) &&
      typeof json['delta']['text'] === 'string' &&
      typeof json['contentBlockIndex'] === 'number'
    )
      return this.addText(json['contentBlockIndex'], json['delta']['text'])
    switch (name) {
      case 'messageStart':
        this.parse(events.messageStart, json)
        return
      case 'contentBlockStart': {
        const event = this.parse(events.contentBlockStart, json)
        const call = event?.start?.toolUse
        if (event && call) this.openCall(event.contentBlockIndex, { id: call.toolUseId, name: call.name })
        return
      }
      case 'contentBlockDelta': {
        const event = this.parse(events.contentBlockDelta, json)
        return event && this.#delta(event.contentBlockIndex, event.delta)
      }
      case 'messageStop':
        this.#stop = this.parse(events.messageStop, json)?.stopReason ?? this.#stop
        return
      case 'metadata': {
        const event = this.parse(events.metadata, json)
        if (!event) return
        this.#usage = event.usage
        this.isComplete = this.#stop !== undefined
      }
      // `contentBlockStop` and what future versions add.
    }
  }

  protected override end(): AnswerEnd | undefined {
    if (this.#stop === undefined) return undefined
    // The vendor could not parse its model's output. The next answer may be better.
    if (this.#stop.startsWith('malformed_')) throw this.text.malformed('could not parse the output of its model')
    const usage = v.safeParse(WireUsage, this.#usage)
    const counts = usage.success ? usage.output : {}
    return {
      stop: STOPS[this.#stop] ?? 'done',
      calls: this.calls.end(),
      usage: usageOf({
        uncachedInput: counts.inputTokens,
        output: counts.outputTokens,
        // Zero tokens are left out.
        cachedInput: counts.cacheReadInputTokens || undefined,
        cacheWrite: counts.cacheWriteInputTokens || undefined,
      }),
      replay: Replay.write(this.pieces(toThought)),
    }
  }

  #delta(index: number, delta: Delta): void {
    if ('toolUse' in delta && isObject(delta.toolUse) && typeof delta.toolUse['input'] === 'string')
      return this.addArguments(index, delta.toolUse['input'])
    // Other content, such as images, is ignored.
    if (!('reasoningContent' in delta) || !isObject(delta.reasoningContent)) return
    const { text, signature, redactedContent } = delta.reasoningContent
    if (typeof redactedContent === 'string') return this.addRedacted(index, redactedContent)
    const block = typeof signature === 'string' ? this.thinkingAt(index) : undefined
    if (block) block.signature = `${block.signature ?? ''}${signature}`
    if (typeof text === 'string') this.addThinking(index, text)
  }
}

function toThought(block: ThinkingBlock): Thought {
  if (block.kind === 'redacted') return { redactedContent: block.data }
  const { text, signature } = block
  return { reasoningText: { text, ...(signature !== undefined && { signature }) } }
}
