import * as v from 'valibot'
import { EventStreamReader, UpstreamFailure } from 'svc/sdk'
import type { StreamedEvent } from 'svc/sdk'
import type { CompletionEvent } from 'svc/providers'
import { failed } from './errors.ts'
import { Trouble } from './wire.ts'

/** So many events of no known kind are a broken stream; a single one is skipped. */
const MOST_UNKNOWN = 3

/** Turns the stream of a prediction into text. The events `output`, `logs`, `error` and `done` are all there are. */
export class Decoder {
  readonly #name: string
  readonly #stream = new EventStreamReader((event) => this.#event(event), (most) => this.#broken(`sent a line of more than ${most} characters`))
  #text = ''
  #unknown = 0
  #seen = false
  #done = false
  chars = 0

  constructor(name: string) { this.#name = name }

  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#stream.feed(bytes)
    return this.#flush()
  }

  /** The rest. Throws `cut` when the stream stopped before `done`. */
  finish(): readonly CompletionEvent[] {
    this.#stream.finish()
    if (!this.#seen) throw this.#broken('sent an answer without an event')
    if (!this.#done) throw new UpstreamFailure(this.#name, `${this.#name} stopped in the middle of its answer`, { reason: 'cut', retry: 'later' })
    return this.#flush()
  }

  #event({ event, data }: StreamedEvent): void {
    switch (event) {
      case 'output': this.#seen = true; this.#text += data; return
      case 'logs': return
      case 'error': throw failed(this.#name, troubleOf(data))
      case 'done': {
        this.#seen = true
        const { reason } = read(data)
        if (reason === 'error') throw failed(this.#name, 'the prediction failed')
        if (reason === 'canceled') throw new UpstreamFailure(this.#name, `${this.#name} cancelled the prediction`, { reason: 'cut', retry: 'later' })
        this.#done = true
        return
      }
      default: if (++this.#unknown >= MOST_UNKNOWN) throw this.#broken('sent an answer that cannot be read')
    }
  }

  #flush(): readonly CompletionEvent[] {
    if (this.#text === '') return []
    const delta = this.#text
    this.#text = ''
    this.chars += delta.length
    return [{ type: 'text', delta }]
  }

  #broken(what: string): UpstreamFailure {
    return new UpstreamFailure(this.#name, `${this.#name} ${what}`, { reason: 'malformed', retry: 'later' })
  }
}

function read(data: string): v.InferOutput<typeof Trouble> {
  try { return v.parse(Trouble, JSON.parse(data)) } catch { return { detail: undefined, reason: undefined } /* the kind of the event says enough */ }
}
const troubleOf = (data: string): string => read(data).detail ?? (data === '' ? 'without a reason' : data)
