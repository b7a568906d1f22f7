import { setTimeout as wait } from 'node:timers/promises'
import { UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateUsage, isPlausible } from 'svc/providers'
import type { ApiClient, ApiRequest, CompletionEvent, CompletionRequest, Usage } from 'svc/providers'
import * as v from 'valibot'
import { Decoder } from './decode.ts'
import { predictionCancelled, predictionFailure } from './errors.ts'
import { Metrics, Prediction } from './wire.ts'

const POLL_MS = 1000
/** The token counts of a prediction are known a moment after its end. */
const METRICS_TRIES = 4
const METRICS_MS = 250
const CANCEL_MS = 3000

/** Reads predictions of Replicate's API. */
export class Predictions {
  readonly #name: string
  readonly #origin: string
  readonly #api: ApiClient

  constructor(name: string, origin: string, api: ApiClient) {
    this.#name = name
    this.#origin = origin
    this.#api = api
  }

  /** Fetches a prediction, or creates one when there is a body. */
  async read(url: string, signal: AbortSignal, body?: string): Promise<Prediction> {
    this.#checkOrigin(url)
    const request: ApiRequest = body === undefined ? { signal } : { signal, body }
    return this.#api.json(url, request, { schema: Prediction, what: 'a prediction' })
  }

  /** The answer as events. The usage of its `end` is an estimate: only `usageOf` knows what was counted. */
  events(prediction: Prediction, request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    const { stream } = prediction.urls
    return stream ? this.#stream(stream, request, signal) : this.#poll(prediction, request, signal)
  }

  /** The tokens Replicate counted; `undefined` when it does not count them. */
  async usageOf({ metrics, urls }: Prediction, signal: AbortSignal): Promise<Usage | undefined> {
    let known = metrics
    for (let tries = 0; tries < METRICS_TRIES; tries++) {
      const read = v.safeParse(Metrics, known)
      const { input_token_count: input, output_token_count: output } = read.success ? read.output : {}
      if (input != null && output != null) return isPlausible({ input, output }) ? { input, output } : undefined
      if (tries > 0) await wait(METRICS_MS, undefined, { signal, ref: false })
      const current = await this.read(urls.get, signal)
      known = current.metrics
      // A model whose prediction has succeeded without counts never has any.
      if (current.status === 'succeeded' && tries > 0 && known == null) return undefined
    }
    return undefined
  }

  /** Failures do not matter: the prediction may be over by now. */
  async cancel(url: string): Promise<void> {
    try {
      const response = await this.#send(url, { signal: AbortSignal.timeout(CANCEL_MS), body: '{}' })
      await response.text()
    } catch (error) {
      if (!(error instanceof UpstreamFailure) && !(error instanceof DOMException)) throw error
    }
  }

  async *#stream(url: string, request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    const decoder = new Decoder(this.#name, request)
    const response = await this.#send(url, { signal, accept: 'text/event-stream' })
    for await (const bytes of response.chunks()) for (const event of decoder.feed(bytes)) yield event
    for (const event of decoder.finish()) yield event
  }

  /** The answer of a model that does not stream: one text, when the prediction is over. */
  async *#poll(started: Prediction, request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    let prediction = started
    while (!this.#isOver(prediction)) {
      await wait(POLL_MS, undefined, { signal, ref: false })
      prediction = await this.read(started.urls.get, signal)
    }
    const { output } = prediction
    const text = Array.isArray(output) ? output.join('') : (output ?? '')
    if (text !== '') yield { type: 'text', delta: text }
    yield { type: 'end', stop: 'done', usage: estimateUsage(request, text.length) }
  }

  /** Throws when the prediction failed. */
  #isOver({ status, error }: Prediction): boolean {
    if (status === 'failed')
      throw predictionFailure(this.#name, (typeof error === 'string' ? error : error?.detail) ?? 'without a reason')
    if (status === 'canceled' || status === 'aborted') throw predictionCancelled(this.#name)
    return status === 'succeeded'
  }

  async #send(url: string, request: ApiRequest): Promise<OutboundResponse> {
    this.#checkOrigin(url)
    return this.#api.send(url, request)
  }

  /** A prediction names the addresses of its stream and its state: they have to be Replicate's own. */
  #checkOrigin(url: string): void {
    const { origin, hostname, protocol } = new URL(url)
    if (origin === this.#origin || (protocol === 'https:' && hostname.endsWith('.replicate.com'))) return
    throw new UpstreamFailure(this.#name, `${this.#name} pointed to ${origin}, which is not its own`, {
      reason: 'malformed',
      retry: 'never',
    })
  }
}
