import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, baseUrlOf, bearerToken, estimateUsage } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink, Usage } from 'svc/providers'
import { classifyFailure } from './errors.ts'
import { Predictions } from './predictions.ts'
import { inputOf } from './prompt.ts'
import { Collection } from './wire.ts'
import type { Prediction } from './wire.ts'

export function createClient(link: ProviderLink<unknown>, defaultModel: string): ProviderClient {
  const base = baseUrlOf(link)
  const { origin } = new URL(base)
  const api = new ApiClient(link, {
    classifyFailure,
    // The address of a stream is a secret itself: the key only goes to the API.
    authenticate: async (url) => (new URL(url).origin === origin ? bearerToken(link) : {}),
  })
  const predictions = new Predictions(link.name, origin, api)

  async function create(completion: CompletionRequest, signal: AbortSignal): Promise<Prediction> {
    const { model } = completion
    const [name = '', version] = model.split(':')
    if (version === undefined && !/^[\w.-]+\/[\w.-]+$/.test(name))
      throw new UpstreamFailure(
        link.name,
        `${link.name} names models as owner/name or owner/name:version, not "${model}"`,
        { reason: 'not_found', retry: 'never' },
      )
    const url = version === undefined ? `${base}/models/${name}/predictions` : `${base}/predictions`
    const input = inputOf(completion)
    const body = { input, stream: true, ...(version !== undefined && { version }) }
    return predictions.read(url, signal, JSON.stringify(body))
  }

  async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    let prediction: Prediction | undefined
    let isOver = false
    try {
      prediction = await create(request, signal)
      let usage = estimateUsage(request, 0)
      for await (const event of predictions.events(prediction, request, signal)) {
        if (event.type === 'end') usage = event.usage
        else yield event
      }
      isOver = true
      usage = (await predictions.usageOf(prediction, signal)) ?? usage
      yield { type: 'end', stop: isAtLimit(request, usage) ? 'length' : 'done', usage }
    } catch (error) {
      signal.throwIfAborted()
      // A prediction that failed is over and need not be cancelled.
      isOver ||= error instanceof UpstreamFailure && error.reason !== 'cut' && error.reason !== 'timeout'
      throw error
    } finally {
      // An abandoned prediction would run to its end, and be charged for.
      if (prediction?.urls.cancel && !isOver) await predictions.cancel(prediction.urls.cancel)
    }
  }

  return {
    complete,
    // Those of Replicate's own collection of language models; many more can be named.
    async models(signal) {
      const { models } = await api.json(
        `${base}/collections/language-models`,
        { signal },
        { schema: Collection, what: 'a list of models' },
      )
      return [...new Set(models.map(({ owner, name }) => `${owner}/${name}`))]
    },
    async probe(signal) {
      const response = await api.send(`${base}/account`, { signal })
      await response.text()
      return { model: defaultModel }
    },
  }
}

/** Replicate does not say why an answer ended. One that is as long as it may be has reached its limit. */
function isAtLimit({ maxTokens }: CompletionRequest, usage: Usage): boolean {
  return maxTokens !== undefined && usage.estimated !== true && usage.output >= maxTokens
}
