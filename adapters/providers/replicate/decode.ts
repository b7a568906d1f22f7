import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { AnswerDecoder } from 'svc/providers'
import type { AnswerEnd } from 'svc/providers'
import { predictionCancelled, predictionFailure } from './errors.ts'
import { Problem } from './wire.ts'

/**
 * Reads the stream of a prediction, whose text is no JSON. The events `output`, `logs`, `error` and `done` are all
 * there are.
 */
export class Decoder extends AnswerDecoder {
  #isEnded = false

  protected override receive(data: string, name: string | undefined): void {
    switch (name) {
      case 'output':
        this.text.understood = true
        return this.text.addText(data)
      case 'logs':
        return
      case 'error':
        throw predictionFailure(this.provider, read(data).detail ?? (data === '' ? 'without a reason' : data))
      case 'done':
        return this.#finish(read(data).reason)
      // There are no others.
      default:
        this.text.skip()
    }
  }
  protected override event(): void {
    this.text.skip()
  }

  /** Nothing says why an answer ended, nor what it used: that stands in the prediction. */
  protected override end(): AnswerEnd | undefined {
    return this.#isEnded ? { stop: 'done', calls: [], usage: undefined } : undefined
  }

  #finish(reason: string | null | undefined): void {
    this.text.understood = true
    if (reason === 'error') throw predictionFailure(this.provider, 'the prediction failed')
    if (reason === 'canceled') throw predictionCancelled(this.provider)
    this.#isEnded = true
  }
}

function read(data: string): v.InferOutput<typeof Problem> {
  try {
    return v.parse(Problem, readJson(data))
  } catch {
    return { detail: undefined, reason: undefined } /* the kind of the event says enough */
  }
}
