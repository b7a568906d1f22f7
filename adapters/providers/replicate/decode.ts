import * as v from 'valibot'
import { EventStreamReader, readJson, StreamedText, UpstreamFailure } from 'svc/sdk'
import type { StreamedEvent } from 'svc/sdk'
import type { CompletionEvent } from 'svc/providers'
import { failed } from './errors.ts'
import { Trouble } from './wire.ts'

/** Turns the stream of a prediction into text. The events `output`, `logs`, `error` and `done` are all there are. */
export class Decoder {
  readonly #name: string
  readonly #said: StreamedText
  readonly #stream = new EventStreamReader(
    (event) => this.#event(event),
    (most) => this.#said.broken(`sent a line of more than ${most} characters`),
  )
  #done = false

  constructor(name: string) {
    this.#name = name
    this.#said = new StreamedText(name)
  }

  /** Characters of all that was said. */
  get chars(): number {
    return this.#said.chars
  }

  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#stream.feed(bytes)
    return this.#said.take()
  }

  /** The rest. Throws `cut` when the stream stopped before `done`. */
  finish(): readonly CompletionEvent[] {
    this.#stream.finish()
    this.#said.requireEnd(this.#done)
    return this.#said.take()
  }

  #event({ event, data }: StreamedEvent): void {
    switch (event) {
      case 'output':
        this.#said.seen = true
        this.#said.say(data)
        return
      case 'logs':
        return
      case 'error':
        throw failed(this.#name, troubleOf(data))
      case 'done': {
        this.#said.seen = true
        const { reason } = read(data)
        if (reason === 'error') throw failed(this.#name, 'the prediction failed')
        if (reason === 'canceled')
          throw new UpstreamFailure(this.#name, `${this.#name} cancelled the prediction`, {
            reason: 'cut',
            retry: 'later',
          })
        this.#done = true
        return
      }
      // There are no others.
      default:
        this.#said.skip()
    }
  }
}

function read(data: string): v.InferOutput<typeof Trouble> {
  try {
    return v.parse(Trouble, readJson(data))
  } catch {
    return { detail: undefined, reason: undefined } /* the kind of the event says enough */
  }
}
const troubleOf = (data: string): string => read(data).detail ?? (data === '' ? 'without a reason' : data)
