import { UpstreamFailure } from 'svc/sdk'
import type { Metrics, UpstreamReason } from 'svc/sdk'
import type { CompletionRequest, ProviderClient } from 'svc/providers'
import type { Catalog } from '../catalog/contract.ts'
import { startAttempt } from './attempt.ts'
import type { Attempt } from './attempt.ts'
import type { Breaker } from './breaker.ts'
import { sleep } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Config } from './config.ts'
import type { Connections } from './connection.ts'
import type { Inference, InferenceEvent, MediaModels, ResolvedModel } from './contract.ts'
import type { DefaultModel } from './default-model.ts'
import type { EmbedderDeps } from './embed.ts'
import type { MediaCallDeps } from './media.ts'
import type { KeyRotation } from './key-rotation.ts'
import type { Keys } from './keys.ts'
import { ModelNaming } from './naming.ts'
import type { Ollama } from './ollama.ts'
import { Retries } from './retries.ts'
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
  const naming = new ModelNaming(deps)
  const callDeps = { ...deps, failures }
  const embedderDeps: EmbedderDeps = {
    connections,
    calls: (model, input, signal, wrapClient) => callModel(callDeps, model, input, signal, { wrapClient }),
    resolve: (choice) => naming.resolve(choice),
    usual: { provider: config.embedding.provider, model: config.embedding.model },
  }
  const mediaDeps: MediaCallDeps = {
    connections,
    resolve: (choice) => naming.resolve(choice),
    calls(model, input, signal, { wrapClient, withinMs }) {
      const limits = { ...config, first_event_ms: withinMs, answer_ms: withinMs }
      return callModel({ ...callDeps, config: limits }, model, input, signal, { wrapClient, isPaidOnce: true })
    },
  }
  const inference: Inference = {
    resolve: (choice) => naming.resolve(choice),
    complete: (model, request, signal, withinMs) => callModel(callDeps, model, request, signal, { withinMs }),
    // Few daemons embed anything: the code is loaded by the first call.
    async embed(...request) {
      const { createEmbedder } = await import('./embed.ts')
      return createEmbedder(embedderDeps)(...request)
    },
    choose: (name, own) => naming.choose(name, own),
    admit: deps.admit,
    doubt: (choice) => naming.doubt(choice),
    async defaultProblem() {
      const problem = await naming.defaultProblem()
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
    resolve: async (...request) => (await open()).resolve(...request),
    createImages: async (...request) => (await open()).createImages(...request),
    speak: async (...request) => (await open()).speak(...request),
    transcribe: async (...request) => (await open()).transcribe(...request),
  }
}

interface CallOptions {
  /** Stands between the call and the client of the driver; an answer needs none. */
  readonly wrapClient?: (client: ProviderClient) => ProviderClient
  readonly withinMs?: number | undefined
  /** Each attempt may cost, so only one that the provider refused is followed by another. */
  readonly isPaidOnce?: boolean
}

/** Calls a model until an attempt succeeds. After its first event an answer is not attempted again. */
async function* callModel(
  deps: RetryDeps,
  model: ResolvedModel,
  input: Omit<CompletionRequest, 'model'>,
  signal: AbortSignal,
  { wrapClient, withinMs = Infinity, isPaidOnce = false }: CallOptions,
): AsyncGenerator<InferenceEvent> {
  const { config, connections, breaker, rotation, clock } = deps
  const request = limitTokens({ ...input, model: model.model }, model.maxOutputTokens)
  const deadline = clock.now() + Math.min(config.answer_ms, withinMs)
  const retries = new Retries(deps, model, request, deadline)
  const chooseKey = (circuits: readonly string[]) => rotation.next(circuits, (circuit) => breaker.blocks(circuit))
  for (;;) {
    signal.throwIfAborted()
    const connection = await connections.open(model, chooseKey)
    const keyPause = retries.keyPause(connection)
    if (keyPause) {
      yield keyPause.phase
      await sleep(clock, keyPause.ms, signal)
    }
    // From here until the attempt listens for the abort nothing is awaited.
    signal.throwIfAborted()
    const wrapped = wrapClient ? { ...connection, client: wrapClient(connection.client) } : connection
    let attempt: Attempt | undefined
    let hasAnswered = false
    let failure: unknown
    try {
      attempt = startAttempt(deps, { provider: model.provider, connection: wrapped, request, deadline, signal })
      // Read by hand: each generator that events pass through costs as much as what it does.
      for (let event = await attempt.next(); event; event = await attempt.next()) {
        hasAnswered = true
        yield event
      }
      return
    } catch (error) {
      attempt?.failed(error)
      failure = isPaidOnce ? withoutRetry(error) : error
    } finally {
      attempt?.close()
    }
    signal.throwIfAborted()
    const pause = await retries.afterFailure(failure, connection, hasAnswered)
    if (!pause) continue
    yield pause.phase
    await sleep(clock, pause.ms, signal)
    yield retries.waitingPhase()
  }
}

/** A failure after which it is not known whether the request was carried out is final. */
const UNCERTAIN: ReadonlySet<UpstreamReason> = new Set(['timeout', 'cut', 'network', 'malformed'])
function withoutRetry(error: unknown): unknown {
  if (!(error instanceof UpstreamFailure) || error.retry === 'never' || !UNCERTAIN.has(error.reason)) return error
  const { reason, system, message } = error
  return new UpstreamFailure(system, `${message}; it may have been paid for, so it is not tried again`, {
    reason,
    retry: 'never',
    cause: error,
  })
}

/** A vendor refuses a limit above what its model can write. */
function limitTokens(request: CompletionRequest, maxOutputTokens: number | undefined): CompletionRequest {
  if (maxOutputTokens === undefined || request.maxTokens === undefined) return request
  return request.maxTokens > maxOutputTokens ? { ...request, maxTokens: maxOutputTokens } : request
}
