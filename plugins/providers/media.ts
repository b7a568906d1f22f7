import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { MediaKind, ProviderClient } from 'svc/providers'
import type { CompletionRequest } from 'svc/providers'
import type { Connections } from './connection.ts'
import type { InferenceEvent, MediaChoice, MediaModels, ResolvedModel } from './contract.ts'
import { isDefault } from './default-model.ts'
import { checkImages, checkSpeech, checkTranscription } from './driver-media.ts'

const NOTHING = { system: '', turns: [], tools: [] } satisfies Omit<CompletionRequest, 'model'>
const MAKES: Readonly<Record<MediaKind, string>> = {
  images: 'make pictures',
  speech: 'speak',
  transcription: 'transcribe',
}

export interface MediaCallDeps {
  readonly connections: Connections
  readonly resolve: (choice: { readonly provider: string; readonly model: string }) => Promise<ResolvedModel>
  /** Calls of a provider, as answers are called for, but none that may have been paid for is made again. */
  readonly calls: (
    model: ResolvedModel,
    request: Omit<CompletionRequest, 'model'>,
    signal: AbortSignal,
    options: { readonly wrapClient: (client: ProviderClient) => ProviderClient; readonly withinMs: number },
  ) => AsyncIterable<InferenceEvent>
}

/** Makes pictures, speech and transcriptions: one request each, with the keys, circuits and limits of every call. */
export function createMediaCalls(deps: MediaCallDeps): Omit<MediaModels, 'usable' | 'offer'> {
  async function resolve(kind: MediaKind, { provider, model }: MediaChoice): Promise<ResolvedModel> {
    const driver = deps.connections.driver(provider)?.driver
    const named = model === undefined || isDefault(model) ? driver?.media?.[kind]?.model : model
    if (driver && named === undefined)
      throw new Refusal('invalid_request', `Provider ${provider} has no usual model to ${MAKES[kind]}: name one`)
    return deps.resolve({ provider, model: named ?? '' })
  }

  /** One request is a call with a single event. */
  async function make<T>(
    kind: MediaKind,
    model: ResolvedModel,
    { signal, withinMs }: { readonly signal: AbortSignal; readonly withinMs: number },
    work: (client: ProviderClient, signal: AbortSignal) => Promise<T> | undefined,
  ): Promise<T> {
    let made: { readonly value: T } | undefined
    const wrapClient = (client: ProviderClient): ProviderClient => ({
      ...client,
      async *complete(_, inner) {
        const working = work(client, inner)
        if (!working) throw new Refusal('invalid_request', `Provider ${model.provider} cannot ${MAKES[kind]}`)
        made = { value: await working }
        yield { type: 'end', stop: 'done', usage: { input: 0, output: 0 } }
      },
    })
    for await (const event of deps.calls(model, NOTHING, signal, { wrapClient, withinMs }))
      if (event.type === 'end') break
    if (!made)
      throw new UpstreamFailure(model.provider, `${model.provider} sent nothing`, {
        reason: 'malformed',
        retry: 'never',
      })
    return made.value
  }

  return {
    resolve,
    createImages: (model, request, options) =>
      make('images', model, options, (client, signal) =>
        client
          .createImages?.({ ...request, model: model.model }, signal)
          .then((made) => checkImages(model.provider, made, request.count)),
      ),
    speak: (model, request, options) =>
      make('speech', model, options, (client, signal) =>
        client.speak?.({ ...request, model: model.model }, signal).then((made) => checkSpeech(model.provider, made)),
      ),
    transcribe: (model, request, options) =>
      make('transcription', model, options, (client, signal) =>
        client
          .transcribe?.({ ...request, model: model.model }, signal)
          .then((made) => checkTranscription(model.provider, made)),
      ),
  }
}
