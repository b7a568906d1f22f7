import { setTimeout as wait } from 'node:timers/promises'
import { parse, readJson, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateUsage, isPlausible } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink, Usage } from 'svc/providers'
import * as v from 'valibot'
import { Decoder } from './decode.ts'
import { failed, failureOf } from './errors.ts'
import { inputOf } from './prompt.ts'
import { Collection, Metrics, Prediction } from './wire.ts'

type EndEvent = Extract<CompletionEvent, { type: 'end' }>

const POLL_MS = 1000
/** What a prediction used is known a moment after its last word. */
const METRICS_TRIES = 4
const METRICS_MS = 250
const CANCEL_MS = 3000

export function createClient(link: ProviderLink<unknown>, defaultModel: string): ProviderClient {
  const base = link.baseUrl.replace(/\/+$/, '')
  const home = new URL(base).origin

  async function call(
    url: string,
    signal: AbortSignal,
    body?: object,
    accept = 'application/json',
  ): Promise<OutboundResponse> {
    signal.throwIfAborted()
    const { origin, hostname, protocol } = new URL(url)
    // Replicate says where its streams are; nobody else may say so through it.
    if (origin !== home && !(protocol === 'https:' && hostname.endsWith('.replicate.com')))
      throw new UpstreamFailure(link.name, `${link.name} pointed to ${origin}, which is not its own`, {
        reason: 'malformed',
        retry: 'never',
      })
    // A stream's address is secret itself; the key stays at home.
    const key = origin === home ? await link.apiKey() : undefined
    const response = await link.fetch(url, {
      signal,
      headers: {
        accept,
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
    if (response.ok) return response
    throw await failureOf(link.name, response, Date.now())
  }

  async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    let prediction: Prediction | undefined
    let isOver = false
    try {
      prediction = await create(request, signal)
      let end: EndEvent | undefined
      for await (const event of prediction.urls.stream
        ? streamed(prediction.urls.stream, request, signal)
        : polled(prediction, request, signal)) {
        if (event.type === 'end') end = event
        else yield event
      }
      isOver = true
      const usage = (await usageOf(prediction, signal)) ?? end?.usage ?? estimateUsage(request, 0)
      // Nothing says why an answer ended; one that is as long as it may be has reached its limit.
      const isCut = request.maxTokens !== undefined && usage.estimated !== true && usage.output >= request.maxTokens
      yield { type: 'end', stop: isCut ? 'length' : 'done', usage }
    } catch (error) {
      signal.throwIfAborted()
      // A prediction that failed is over and need not be cancelled.
      isOver ||= error instanceof UpstreamFailure && error.reason !== 'cut' && error.reason !== 'timeout'
      throw error
    } finally {
      // What nobody waits for any more would be paid for to its end.
      if (prediction?.urls.cancel && !isOver) await cancel(prediction.urls.cancel)
    }
  }

  async function* streamed(
    url: string,
    request: CompletionRequest,
    signal: AbortSignal,
  ): AsyncGenerator<CompletionEvent> {
    const decoder = new Decoder(link.name, request)
    const response = await call(url, signal, undefined, 'text/event-stream')
    for await (const bytes of response.chunks()) for (const event of decoder.feed(bytes)) yield event
    for (const event of decoder.finish()) yield event
  }

  /** The answer of a model that does not stream. */
  async function* polled(
    begun: Prediction,
    request: CompletionRequest,
    signal: AbortSignal,
  ): AsyncGenerator<CompletionEvent> {
    const { output } = await waitForEnd(begun, signal)
    const text = Array.isArray(output) ? output.join('') : (output ?? '')
    if (text !== '') yield { type: 'text', delta: text }
    yield { type: 'end', stop: 'done', usage: estimateUsage(request, text.length) }
  }

  async function create({ model, ...request }: CompletionRequest, signal: AbortSignal): Promise<Prediction> {
    const [name = '', version] = model.split(':')
    if (version === undefined && !/^[\w.-]+\/[\w.-]+$/.test(name))
      throw new UpstreamFailure(
        link.name,
        `${link.name} names models as owner/name or owner/name:version, not "${model}"`,
        { reason: 'not_found', retry: 'never' },
      )
    const input = inputOf({ model, ...request })
    const response = await call(
      version === undefined ? `${base}/models/${name}/predictions` : `${base}/predictions`,
      signal,
      { input, stream: true, ...(version !== undefined && { version }) },
    )
    return readAs(Prediction, response, 'a prediction')
  }

  /** Asks until it is over, for models that do not stream. */
  async function waitForEnd(begun: Prediction, signal: AbortSignal): Promise<Prediction> {
    for (let now = begun; ; now = await readAs(Prediction, await call(begun.urls.get, signal), 'a prediction')) {
      if (now.status === 'succeeded') return now
      if (now.status === 'failed')
        throw failed(link.name, (typeof now.error === 'string' ? now.error : now.error?.detail) ?? 'without a reason')
      if (now.status === 'canceled' || now.status === 'aborted')
        throw new UpstreamFailure(link.name, `${link.name} cancelled the prediction`, { reason: 'cut', retry: 'later' })
      await wait(POLL_MS, undefined, { signal, ref: false })
    }
  }

  async function usageOf({ metrics, urls }: Prediction, signal: AbortSignal): Promise<Usage | undefined> {
    for (let tries = 0, known = metrics; tries < METRICS_TRIES; tries++) {
      const read = v.safeParse(Metrics, known)
      const { input_token_count: input, output_token_count: output } = read.success ? read.output : {}
      if (input != null && output != null) return isPlausible({ input, output }) ? { input, output } : undefined
      if (tries > 0) await wait(METRICS_MS, undefined, { signal, ref: false })
      const now = await readAs(Prediction, await call(urls.get, signal), 'a prediction')
      known = now.metrics
      // A model that does not count never will.
      if (now.status === 'succeeded' && tries > 0 && known == null) return undefined
    }
    return undefined
  }

  /** Nobody waits for its outcome: the prediction may be over by now. */
  async function cancel(url: string): Promise<void> {
    try {
      await (await call(url, AbortSignal.timeout(CANCEL_MS), {})).text()
    } catch (error) {
      if (!(error instanceof UpstreamFailure) && !(error instanceof DOMException)) throw error
    }
  }

  async function readAs<T extends typeof Prediction | typeof Collection>(
    schema: T,
    response: OutboundResponse,
    what: string,
  ): Promise<v.InferOutput<T>> {
    const text = await response.text()
    try {
      return parse(schema, readJson(text))
    } catch (cause) {
      throw new UpstreamFailure(
        link.name,
        `${link.name} sent ${what} that cannot be read: the base URL is wrong or a proxy is in the way`,
        { reason: 'malformed', retry: 'never', cause },
      )
    }
  }

  /** Those of Replicate's own collection of language models; many more can be named. */
  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const { models: found } = await readAs(
      Collection,
      await call(`${base}/collections/language-models`, signal),
      'a list of models',
    )
    return [...new Set(found.map(({ owner, name }) => `${owner}/${name}`))]
  }

  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    await (await call(`${base}/account`, signal)).text()
    return { model: defaultModel }
  }

  return { complete, models, probe }
}
