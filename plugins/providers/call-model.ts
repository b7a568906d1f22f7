import { UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'
import type { CompletionRequest, ProviderClient } from 'svc/providers'
import { sleep } from 'svc/internal'
import { startAttempt } from './attempt.ts'
import type { Attempt } from './attempt.ts'
import type { InferenceEvent, ResolvedModel } from './contract.ts'
import { Retries } from './retries.ts'
import type { RetryDeps } from './retries.ts'

export interface CallOptions {
  /** Stands between the call and the client of the driver; an answer needs none. */
  readonly wrapClient?: (client: ProviderClient) => ProviderClient
  readonly withinMs?: number | undefined
  /** Each attempt may cost, so only one that the provider refused is followed by another. */
  readonly isPaidOnce?: boolean
}

/** Calls a model until an attempt succeeds. After its first event an answer is not attempted again. */
export async function* callModel(
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
