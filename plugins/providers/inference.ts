import { UpstreamFailure } from 'svc/sdk'
import type { Metrics } from 'svc/sdk'
import type { CompletionEvent, CompletionRequest, ProviderClient } from 'svc/providers'
import type { Catalog } from '../catalog/contract.ts'
import { advise } from './advice.ts'
import { pause } from './backoff.ts'
import type { Breaker } from './breaker.ts'
import { Call } from './call.ts'
import { sleep } from './clock.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { Connection, Connections } from './connection.ts'
import type { Inference, InferenceEvent, ProviderState, ResolvedModel } from './contract.ts'
import type { DefaultModel } from './default-model.ts'
import { createEmbedder } from './embed.ts'
import { variablesOf, withoutKey } from './keys.ts'
import type { Keys } from './keys.ts'
import { createNaming } from './naming.ts'
import type { Ollama } from './ollama.ts'
import type { KeyRotation } from './key-rotation.ts'
import { createResolver } from './resolve.ts'

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
  /** `said`: its message without the key. */
  readonly retrying: (reason: string, failure: UpstreamFailure, waitMs: number) => void
  readonly metrics?: Metrics
}

export function createInference(deps: InferenceDeps): Inference {
  const { config, connections, keys, breaker, rotation, defaults, ollama, clock } = deps
  const choose = (circuits: readonly string[]) => rotation.next(circuits, (circuit) => breaker.blocks(circuit))

  const failures = deps.metrics?.counter(
    'svc_llm_provider_errors_total',
    'Calls of a provider that failed, each try counted, by reason.',
  )

  const naming = createNaming(deps)
  const resolve = createResolver({ ...deps, place: naming.place })

  /** `through` stands between the call and the client: an answer goes straight through. */
  async function* complete(
    model: ResolvedModel,
    input: Omit<CompletionRequest, 'model'>,
    signal: AbortSignal,
    through?: (client: ProviderClient) => ProviderClient,
    withinMs = Infinity,
  ): AsyncGenerator<InferenceEvent> {
    const { maxOutputTokens: most } = model
    // A vendor refuses a longer answer than its model gives.
    const request: CompletionRequest = {
      ...input,
      model: model.model,
      ...(most !== undefined && input.maxTokens !== undefined && input.maxTokens > most && { maxTokens: most }),
    }
    const deadline = clock.now() + Math.min(config.answer_ms, withinMs)
    let changes = 0
    let circuitWaitMs = config.circuit_wait_ms
    for (let tries = 1; ; tries++) {
      signal.throwIfAborted()
      const connection = await connections.open(model, choose)
      if (
        connection.waitMs > 0 &&
        connection.waitMs <= config.retry_after_max_ms &&
        clock.now() + connection.waitMs < deadline
      ) {
        yield {
          type: 'phase',
          phase: 'retrying',
          detail: `every key of ${model.provider} was used too often and rests`,
          retryAt: new Date(Date.now() + connection.waitMs).toISOString(),
          attempt: tries,
        }
        await sleep(clock, connection.waitMs, signal)
      }
      // From here to the listener for the abort nothing waits.
      signal.throwIfAborted()
      let begun = false
      try {
        const attempt = begin(
          through ? { ...connection, client: through(connection.client) } : connection,
          model,
          request,
          deadline,
          signal,
        )
        // Read by hand: each generator that events pass through costs as much as what it does.
        try {
          for (let event = await attempt.next(); event; event = await attempt.next()) {
            begun = true
            yield event
          }
          return
        } catch (error) {
          attempt.failed(error)
          throw error
        } finally {
          attempt.end()
        }
      } catch (error) {
        signal.throwIfAborted()
        // Any name may stand in a manifest beside an address; only those that are known here make a series.
        if (error instanceof UpstreamFailure && !(error instanceof CircuitOpen))
          failures?.add(1, {
            provider: connections.driver(model.provider) ? model.provider : 'other',
            reason: error.reason,
          })
        if (model.provider === 'ollama' && error instanceof UpstreamFailure && error.reason === 'network')
          ollama.forget()
        if (
          error instanceof UpstreamFailure &&
          !begun &&
          changesKey(connection, error) &&
          ++changes < connection.circuits.length
        ) {
          tries--
          continue
        }
        if (!(error instanceof UpstreamFailure) || begun || error.retry === 'never')
          throw advise(error, model.provider, connection, request)
        const waitMs = pause(
          tries,
          error.retryAfterSecs,
          { minMs: config.back_off_min_ms, maxMs: config.back_off_max_ms, retryAfterMaxMs: config.retry_after_max_ms },
          deps.random(),
        )
        const open = error instanceof CircuitOpen
        if (
          tries >= config.tries ||
          (open && error.waitMs > circuitWaitMs) ||
          clock.now() + (open ? error.waitMs : waitMs) >= deadline
        )
          throw advise(error, model.provider, connection, request, open ? 1 : tries)
        const reason = withoutKey(error.message, connection.key)
        const pauseMs = open ? error.waitMs : waitMs
        // Nothing was called, so the try is not used up.
        if (open) {
          circuitWaitMs -= pauseMs
          tries--
        }
        deps.retrying(reason, error, pauseMs)
        yield {
          type: 'phase',
          phase: open ? 'circuit_open' : 'retrying',
          detail: reason,
          retryAt: new Date(Date.now() + pauseMs).toISOString(),
          attempt: tries + 1,
        }
        await sleep(clock, pauseMs, signal)
        yield {
          type: 'phase',
          phase: 'waiting_for_model',
          detail: `${model.provider}/${model.model}`,
          attempt: tries + 1,
        }
      }
    }
  }

  /** The failure is the key's, which rests then. Whether there is another one to go on with. */
  function changesKey({ circuit, circuits }: Connection, { reason, retry, retryAfterSecs }: UpstreamFailure): boolean {
    if (circuits.length < 2 || (reason !== 'auth' && reason !== 'rate_limit')) return false
    // What is used up does not come back in seconds.
    if (reason === 'auth' || retry === 'never') rotation.suspend(circuit, config.key_rest_ms, 'refused')
    else
      rotation.suspend(
        circuit,
        retryAfterSecs === undefined
          ? config.rate_limit_rest_ms
          : Math.min(retryAfterSecs * 1000, config.retry_after_max_ms),
        'rate_limit',
      )
    return circuits.some((other) => !rotation.isSuspended(other) && !breaker.blocks(other))
  }

  /** One try. `next` gives its events up to `end`, then `undefined`, or rejects. */
  function begin(
    connection: Connection,
    model: ResolvedModel,
    request: CompletionRequest,
    deadline: number,
    signal: AbortSignal,
  ) {
    const admission = breaker.admit(connection.circuit)
    if (typeof admission === 'number') throw new CircuitOpen(model.provider, config.breaker_failures, admission)
    const controller = new AbortController()
    const stop = (): void => controller.abort(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    const leave = connection.entry.enter(controller)
    const left = (): void => {
      admission.left()
      signal.removeEventListener('abort', stop)
    }
    let call: Call
    try {
      call = new Call(model.provider, connection.client, request, controller, clock, {
        firstEventMs: config.first_event_ms,
        idleMs: config.idle_ms,
        deadline,
      })
    } catch (error) {
      left()
      leave()
      throw error
    }
    return {
      async next(): Promise<CompletionEvent | undefined> {
        const event = await call.next()
        if (event?.type === 'end') admission.succeeded()
        return event
      },
      failed(error: unknown): void {
        if (
          !signal.aborted &&
          error instanceof UpstreamFailure &&
          error.retry === 'later' &&
          error.reason !== 'rate_limit'
        )
          admission.failed()
      },
      end(): void {
        left()
        call.close(leave)
      },
    }
  }

  function states(): readonly ProviderState[] {
    return connections.names().flatMap((name) => {
      const driver = connections.driver(name)?.driver
      if (!driver) return []
      const source = keys.source(name, variablesOf(driver))
      const lacks = connections.lacks(name)
      return [
        {
          name,
          title: driver.name === name ? driver.title : name,
          authStatus:
            lacks !== null
              ? lacks === undefined
                ? ('configured' as const)
                : ('missing' as const)
              : source
                ? ('configured' as const)
                : driver.envVar === undefined
                  ? ('no_key_needed' as const)
                  : ('missing' as const),
          ...(lacks && { lacks }),
          envVar: driver.name === name ? driver.envVar : undefined,
          baseUrl: connections.baseUrl(name),
          defaultModel: connections.section(name)?.default_model ?? driver.defaultModel,
        },
      ]
    })
  }

  const embed = createEmbedder({
    connections,
    calls: complete,
    resolve,
    usual: { provider: config.embedding.provider, model: config.embedding.model },
  })

  return {
    resolve,
    complete: (model, request, signal, withinMs) => complete(model, request, signal, undefined, withinMs),
    embed,
    choose: naming.choose,
    admit: deps.admit,
    doubt: naming.doubt,
    defaultProblem: naming.defaultProblem,
    providers: states,
    fallbacks: () => config.fallback_models,
    defaultModel: async () => {
      const { provider, model } = await defaults.find()
      return { provider, model }
    },
  }
}

/** The provider failed so often that it is left alone for a while. */
class CircuitOpen extends UpstreamFailure {
  readonly waitMs: number
  constructor(provider: string, failures: number, waitMs: number) {
    const secs = Math.ceil(waitMs / 1000)
    super(provider, `Provider ${provider} failed ${failures} times in a row and is not called for another ${secs} s`, {
      reason: 'overloaded',
      retry: 'later',
      retryAfterSecs: secs,
    })
    this.waitMs = waitMs
  }
}
