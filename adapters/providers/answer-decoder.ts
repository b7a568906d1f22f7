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

/** How an answer ended. Its calls make `done` into `calls`. */
export interface AnswerEnd {
  readonly stop: 'done' | 'length' | 'refused'
  /** In the order of the answer. */
  readonly calls: readonly ToolCall[]
  /** Estimated when the vendor counted nothing, or nothing that can be believed. */
  readonly usage: Usage | undefined
  /** Given out with calls only: nothing else is answered within the turn. */
  readonly replay?: string | undefined
}

/** Cuts the bytes of an answer into events. */
export interface AnswerReader {
  feed(bytes: Uint8Array): void
  /** Reads what the end of the stream completes. */
  finish(): void
}

/**
 * Turns the bytes of one streamed answer into events: text and thinking as they come, then the calls, then `end`.
 * What all vendors share
 * is here: malformed and cut answers, JSON, limits, order. A subclass reads the events of its vendor. Holds no
 * timers and no connections.
 */
export abstract class AnswerDecoder implements StreamDecoder<CompletionEvent> {
  protected readonly provider: string
  protected readonly request: CompletionRequest
  /** What the model wrote, for events to add to. */
  protected readonly text: StreamedText
  protected readonly calls: ToolCallBuilder
  /** Set by the vendor's last event: what follows it is of no interest. */
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

  /** The events these bytes complete. Text of one chunk of the network is one event. */
  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#reader ??= this.openReader()
    this.#reader.feed(bytes)
    return this.text.take()
  }

  /** The rest, ending with `end`. Throws `cut` when nothing proves that the answer is whole. */
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

  /**
   * A few vendors, and what stands between, answer a request for a stream with the whole as JSON; then comes
   * `finish`.
   */
  async whole(response: OutboundResponse): Promise<readonly CompletionEvent[]> {
    this.receive(await response.text(), undefined)
    return this.text.take()
  }

  /**
   * One event, parsed. Throws the failure that an error within the stream means. `name` is the event's where its
   * frame names it.
   */
  protected abstract event(json: unknown, name: string | undefined): void
  /** How the answer ended; `undefined` when nothing said so, and it is cut. */
  protected abstract end(): AnswerEnd | undefined

  /**
   * What cuts the bytes into events and hands them to `receive`: a `text/event-stream` unless the vendor has its own
   * frames.
   */
  protected openReader(): AnswerReader {
    return new EventStreamReader(
      ({ data, event }) => {
        if (!this.isComplete) this.receive(data, event)
      },
      (maxChars) => this.text.malformed(`sent a line of more than ${maxChars} characters`),
    )
  }

  /** Parses one event with the limit of depth. One that is no JSON is skipped; too many of them are `malformed`. */
  protected receive(data: string, name: string | undefined): void {
    if (data === DONE) return this.doneMarker()
    let json: unknown
    try {
      json = readJson(data)
    } catch {
      return this.text.skip()
    }
    this.event(json, name)
  }
  /** `[DONE]`, which means something in OpenAI's format alone. */
  protected doneMarker(): void {}

  /** An event as its schema has it; `undefined` for one of another form, which is skipped. */
  protected parse<S extends v.GenericSchema>(schema: S, json: unknown): v.InferOutput<S> | undefined {
    const parsed = v.safeParse(schema, json)
    if (!parsed.success) {
      this.text.skip()
      return undefined
    }
    this.text.understood = true
    return parsed.output
  }
}
