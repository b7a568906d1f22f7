import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { AnswerDecoder } from 'svc/providers'
import type { AnswerEnd } from 'svc/providers'
import { predictionCancelled, predictionFailure } from './errors.ts'
import { Problem } from './wire.ts'

/** Reads the stream of a prediction: the events `output`, whose data are plain text, `logs`, `error` and `done`. */
export class Decoder extends AnswerDecoder {
  #isEnded = false

  protected override handleData(data: string, name: string | undefined): void {
    switch (name) {
      case 'output':
        this.text.hasEvents = true
        return this.text.addText(data)
      case 'logs':
        return
      case 'error':
        throw predictionFailure(this.provider, read(data).detail ?? (data === '' ? 'without a reason' : data))
      case 'done':
        return this.#finish(read(data).reason)
      default:
        this.text.skip()
    }
  }
  protected override handleEvent(): void {
    this.text.skip()
  }

  /** The stream has neither a reason to stop nor usage; the prediction has the usage. */
  protected override end(): AnswerEnd | undefined {
    return this.#isEnded ? { stop: 'done', calls: [], usage: undefined } : undefined
  }

  #finish(reason: string | null | undefined): void {
    this.text.hasEvents = true
    if (reason === 'error') throw predictionFailure(this.provider, 'the prediction failed')
    if (reason === 'canceled') throw predictionCancelled(this.provider)
    this.#isEnded = true
  }
}

function read(data: string): v.InferOutput<typeof Problem> {
  try {
    return v.parse(Problem, readJson(data))
  } catch {
    return { detail: undefined, reason: undefined } /* the type of the event is enough */
  }
}
