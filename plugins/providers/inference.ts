import type { Metrics, UpstreamFailure } from 'svc/sdk'
import type { CompletionRequest } from 'svc/providers'
import type { Catalog } from '../catalog/contract.ts'
import type { Breaker } from './breaker.ts'
import type * as CallModel from './call-model.ts'
import type { CallOptions } from './call-model.ts'
import type { Clock } from 'svc/internal'
import type { Config } from './config.ts'
import type { Connections } from './connection.ts'
import type { Inference, InferenceEvent, MediaModels, ResolvedModel } from './contract.ts'
import type { DefaultModel } from './default-model.ts'
import type { EmbedderDeps } from './embed.ts'
import type { MediaCallDeps } from './media.ts'
import type { KeyRotation } from './key-rotation.ts'
import type { Keys } from './keys.ts'
import type { ModelNaming } from './naming.ts'
import type { Ollama } from './ollama.ts'
import type { RetryDeps } from './retries.ts'
import { providerStates, usableMedia } from './states.ts'

export interface InferenceDeps {
  readonly config: Config
  readonly connections: Connections
  readonly keys: Keys
  readonly breaker: Breaker
  readonly rotation: KeyRotation
  readonly defaults: DefaultModel
  readonly catalog: () => Catalog | undefined
  readonly ollama: Ollama
  readonly clock: Clock
  readonly random: () => number
  readonly admit: Inference['admit']
  /** Called before each pause; `reason` is the failure's message without the key. */
  readonly retrying: (reason: string, failure: UpstreamFailure, waitMs: number) => void
  readonly metrics?: Metrics
}

export function createInference(deps: InferenceDeps): { readonly inference: Inference; readonly media: MediaModels } {
  const { config, connections, keys, defaults } = deps
  const failures = deps.metrics?.counter(
    'svc_llm_provider_errors_total',
    'Calls of a provider that failed, each try counted, by reason.',
  )
  let opened: Promise<ModelNaming> | undefined
  const naming = (): Promise<ModelNaming> =>
    (opened ??= import('./naming.ts').then((code) => new code.ModelNaming(deps)))
  const resolve: Inference['resolve'] = async (choice) => (await naming()).resolve(choice)
  const callDeps = { ...deps, failures }
  const embedderDeps: EmbedderDeps = {
    connections,
    calls: (model, input, signal, wrapClient) => callModel(callDeps, model, input, signal, { wrapClient }),
    resolve,
    usual: { provider: config.embedding.provider, model: config.embedding.model },
  }
  const mediaDeps: MediaCallDeps = {
    connections,
    resolve,
    calls(model, input, signal, { wrapClient, withinMs }) {
      const limits = { ...config, first_event_ms: withinMs, answer_ms: withinMs }
      return callModel({ ...callDeps, config: limits }, model, input, signal, { wrapClient, isPaidOnce: true })
    },
  }
  const inference: Inference = {
    resolve,
    complete: (model, request, signal, withinMs) => callModel(callDeps, model, request, signal, { withinMs }),
    // Few daemons embed anything: the code is loaded by the first call.
    async embed(...request) {
      const { createEmbedder } = await import('./embed.ts')
      return createEmbedder(embedderDeps)(...request)
    },
    choose: async (name, own) => (await naming()).choose(name, own),
    admit: deps.admit,
    doubt: async (choice) => (await naming()).doubt(choice),
    async defaultProblem() {
      const problem = await (await naming()).defaultProblem()
      if (problem !== undefined) return problem
      const { provider } = await defaults.find()
      return deps.breaker.isOpen(provider)
        ? `calls of "${provider}" have failed; it is tried again now and then, and the log says why`
        : undefined
    },
    providers: () => providerStates(connections, keys),
    fallbacks: () => config.fallback_models,
    defaultModel: async () => {
      const { provider, model } = await defaults.find()
      return { provider, model }
    },
  }
  return { inference, media: createMediaModels(mediaDeps, keys) }
}

/** Few daemons make media: the code is loaded by the first call. */
function createMediaModels(deps: MediaCallDeps, keys: Keys): MediaModels {
  const open = async () => (await import('./media.ts')).createMediaCalls(deps)
  return {
    usable: (kind) => usableMedia(deps.connections, keys, kind),
    offer: (provider) => deps.connections.driver(provider)?.driver.media,
    resolve: async (...request) => (await open()).resolve(...request),
    createImages: async (...request) => (await open()).createImages(...request),
    speak: async (...request) => (await open()).speak(...request),
    transcribe: async (...request) => (await open()).transcribe(...request),
  }
}

/** Kept: an `import()` of what is loaded already resolves its name again. */
let calls: Promise<typeof CallModel> | undefined

/** Calls a model with code that is loaded by the first call. Not a generator: every event would pass through it. */
function callModel(
  deps: RetryDeps,
  model: ResolvedModel,
  input: Omit<CompletionRequest, 'model'>,
  signal: AbortSignal,
  options: CallOptions,
): AsyncIterable<InferenceEvent> {
  let events: AsyncIterator<InferenceEvent> | undefined
  let hasLeft = false
  const first = async (): Promise<IteratorResult<InferenceEvent>> => {
    const code = await (calls ??= import('./call-model.ts'))
    if (hasLeft) return { done: true, value: undefined }
    events ??= code.callModel(deps, model, input, signal, options)
    return events.next()
  }
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => (events ? events.next() : first()),
      async return() {
        hasLeft = true
        await events?.return?.()
        return { done: true, value: undefined }
      },
    }),
  }
}
