import { EventStreamReader, readJson } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import * as v from 'valibot'
import type { CompletionEvent, CompletionRequest, ToolCall } from './completion.ts'
import type { StreamDecoder } from './streamed-answer.ts'
import { StreamedText } from './streamed-text.ts'
import { ToolCallBuilder } from './tool-calls.ts'
import { estimateUsage } from './usage.ts'
import type { Usage } from './usage.ts'

const DONE = '[DONE]'

/** How an answer ended. With calls, `done` becomes `calls`. */
export interface AnswerEnd {
  readonly stop: 'done' | 'length' | 'refused'
  /** In the order of the answer. */
  readonly calls: readonly ToolCall[]
  /** `undefined` when the vendor's counts are missing or implausible: then it is estimated. */
  readonly usage: Usage | undefined
  /** Only passed on together with calls: without calls the turn is over. */
  readonly replay?: string | undefined
}

/** Splits the bytes of an answer into events. */
export interface AnswerReader {
  feed(bytes: Uint8Array): void
  /** Handles what is left at the end of the stream. */
  finish(): void
}

/**
 * Turns the bytes of one streamed answer into events: text and thinking as they arrive, then the calls, then `end`. It
 * covers what all vendors share: malformed and truncated answers, JSON, limits, order. A subclass reads the events of
 * its vendor. Holds neither timers nor connections.
 */
export abstract class AnswerDecoder implements StreamDecoder<CompletionEvent> {
  protected readonly provider: string
  protected readonly request: CompletionRequest
  /** Collects the text of the answer. */
  protected readonly text: StreamedText
  protected readonly calls: ToolCallBuilder
  /** Set by the vendor's last event: what follows is ignored. */
  protected isComplete = false
  #reader: AnswerReader | undefined

  constructor(provider: string, request: CompletionRequest) {
    this.provider = provider
    this.request = request
    this.text = new StreamedText(provider)
    this.calls = new ToolCallBuilder(this.text)
  }

  get done(): boolean {
    return this.isComplete
  }

  /** The events completed by these bytes. The text of one chunk is one event. */
  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#reader ??= this.openReader()
    this.#reader.feed(bytes)
    return this.text.take()
  }

  /** The remaining events, the last of which is `end`. Throws `cut` when the answer is incomplete. */
  finish(): readonly CompletionEvent[] {
    this.#reader?.finish()
    const { stop, calls, usage, replay } = this.text.requireEnd(this.end())
    const rest = this.text.take()
    return [
      ...rest,
      ...calls.map((call) => ({ type: 'call' as const, call })),
      {
        type: 'end',
        stop: stop === 'done' && calls.length > 0 ? 'calls' : stop,
        usage: usage ?? estimateUsage(this.request, this.text.chars),
        ...(calls.length > 0 && replay !== undefined && { replay }),
      },
    ]
  }

  /** Reads an answer that a vendor or a proxy sent as JSON instead of a stream; `finish` follows. */
  async decodeWhole(response: OutboundResponse): Promise<readonly CompletionEvent[]> {
    this.handleData(await response.text(), undefined)
    return this.text.take()
  }

  /** Handles one parsed event. Throws for an error within the stream. `name` is the type from the event's frame. */
  protected abstract handleEvent(json: unknown, name: string | undefined): void
  /** How the answer ended; `undefined` when it is incomplete. */
  protected abstract end(): AnswerEnd | undefined

  /** The reader that passes events to `handleData`: of `text/event-stream`, unless the vendor has its own frames. */
  protected openReader(): AnswerReader {
    return new EventStreamReader(
      ({ data, event }) => {
        if (!this.isComplete) this.handleData(data, event)
      },
      (maxChars) => this.text.malformed(`sent a line of more than ${maxChars} characters`),
    )
  }

  /** Parses one event. Events that are not JSON are skipped; too many of them make the answer `malformed`. */
  protected handleData(data: string, name: string | undefined): void {
    if (data === DONE) return this.handleDone()
    let json: unknown
    try {
      json = readJson(data)
    } catch {
      return this.text.skip()
    }
    this.handleEvent(json, name)
  }
  /** Handles `[DONE]`, which only has a meaning in OpenAI's format. */
  protected handleDone(): void {}

  /** Parses an event with a schema; `undefined` for a mismatch, which is skipped. */
  protected parse<S extends v.GenericSchema>(schema: S, json: unknown): v.InferOutput<S> | undefined {
    const parsed = v.safeParse(schema, json)
    if (!parsed.success) {
      this.text.skip()
      return undefined
    }
    this.text.hasEvents = true
    return parsed.output
  }
}
