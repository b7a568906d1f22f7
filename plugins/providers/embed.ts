import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { CompletionRequest, Embedding, EmbeddingRequest, Embeddings, ProviderClient } from 'svc/providers'
import type { Connections } from './connection.ts'
import type { Embedded, Inference, ResolvedModel, InferenceEvent } from './contract.ts'
import { isDefault } from './default-model.ts'
import { checkEmbeddings } from './driver-events.ts'

/** The size of one request where a driver does not state it. */
const USUAL: Omit<Embedding, 'model'> = { texts: 16, chars: 60_000 }
/** Texts of one call. */
const MAX_TEXTS = 10_000
const NOTHING = { system: '', turns: [], tools: [] } satisfies Omit<CompletionRequest, 'model'>

/** Calls of a provider with retries, keys and time limits. `wrapClient` stands between them and the driver's client. */
export type Calls = (
  model: ResolvedModel,
  request: Omit<CompletionRequest, 'model'>,
  signal: AbortSignal,
  through: (client: ProviderClient) => ProviderClient,
) => AsyncIterable<InferenceEvent>
export interface EmbedderDeps {
  readonly connections: Connections
  readonly calls: Calls
  readonly resolve: Inference['resolve']
  /** What embeds when nothing is named. */
  readonly usual: { readonly provider: string; readonly model: string | undefined }
}

/** Embeds any number of texts, request by request, each tried again as an answer would be. */
export function createEmbedder({ connections, calls, resolve, usual }: EmbedderDeps): Inference['embed'] {
  return async (choice, texts, signal) => {
    if (texts.length > MAX_TEXTS)
      throw new Refusal('invalid_request', `At most ${MAX_TEXTS} texts are embedded at once, not ${texts.length}`)
    const provider = isDefault(choice.provider) && choice.baseUrl === undefined ? usual.provider : choice.provider
    const named = isDefault(choice.model) ? (provider === usual.provider ? usual.model : undefined) : choice.model
    const driver = connections.driver(provider, choice.baseUrl !== undefined)?.driver
    const name = named ?? driver?.embedding?.model
    if (driver && name === undefined)
      throw new Refusal('invalid_request', `Provider ${provider} has no usual model that embeds: name one`)
    const model = await resolve({ ...choice, provider, model: name ?? '' })
    const { texts: maxTexts, chars } = driver?.embedding ?? USUAL
    const vectors: Float32Array[] = []
    let input = 0
    let estimated = false
    for (const part of parts(texts, maxTexts, chars)) {
      const { vectors: some, usage } = await embedPart(
        model,
        { model: model.model, texts: part, ...(choice.purpose && { purpose: choice.purpose }) },
        signal,
      )
      vectors.push(...some)
      input += usage.input
      estimated ||= usage.estimated === true
    }
    if (new Set(vectors.map(({ length }) => length)).size > 1)
      throw broken(provider, 'sent vectors of different lengths')
    return {
      provider: model.provider,
      model: model.model,
      price: model.price,
      vectors,
      usage: { input, ...(estimated && { estimated }) },
    } satisfies Embedded
  }

  /** One request is a call with a single event, so that time, keys, circuits and retries are those of every call. */
  async function embedPart(model: ResolvedModel, request: EmbeddingRequest, signal: AbortSignal): Promise<Embeddings> {
    let found: Embeddings | undefined
    const through = (client: ProviderClient): ProviderClient => ({
      ...client,
      async *complete(_, inner) {
        if (!client.embed) throw new Refusal('invalid_request', `Provider ${model.provider} cannot embed texts`)
        const embedded = checkEmbeddings(model.provider, await client.embed(request, inner))
        const { input } = embedded.usage
        if (embedded.vectors.length !== request.texts.length)
          throw broken(model.provider, `sent ${embedded.vectors.length} vectors for ${request.texts.length} texts`)
        if (!embedded.vectors.every((vector) => vector.length > 0 && vector.every(Number.isFinite)))
          throw broken(model.provider, 'sent an invalid vector')
        if (!Number.isInteger(input) || input < 0) throw broken(model.provider, `counted ${input} tokens`)
        found = embedded
        yield { type: 'end', stop: 'done', usage: { input, output: 0 } }
      },
    })
    for await (const event of calls(model, NOTHING, signal, through)) if (event.type === 'end') break
    if (!found) throw broken(model.provider, 'sent no vectors')
    return found
  }
}

/**
 * As many texts as fit into one request. A text that is too long is sent alone, for the provider to cut or to refuse.
 */
function* parts(texts: readonly string[], maxTexts: number, chars: number): Generator<readonly string[]> {
  let part: string[] = []
  let held = 0
  for (const text of texts) {
    if (part.length > 0 && (part.length >= maxTexts || held + text.length > chars)) {
      yield part
      part = []
      held = 0
    }
    part.push(text)
    held += text.length
  }
  if (part.length > 0) yield part
}

const broken = (provider: string, what: string): UpstreamFailure =>
  new UpstreamFailure(provider, `${provider} ${what}`, { reason: 'malformed', retry: 'later' })
