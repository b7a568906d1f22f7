import { UpstreamFailure } from 'svc/sdk'
import type { Counter } from 'svc/sdk'
import type { CompletionRequest } from 'svc/providers'
import { CircuitOpen } from './attempt.ts'
import { pause } from './backoff.ts'
import type { Breaker } from './breaker.ts'
import type { Clock } from 'svc/internal'
import type { Config } from './config.ts'
import type { Connection, Connections } from './connection.ts'
import type { CallPhase, ResolvedModel } from './contract.ts'
import type { KeyRotation } from './key-rotation.ts'
import { withoutKey } from './keys.ts'
import type { Ollama } from './ollama.ts'

const loadAdvice = () => import('./advice.ts')

export interface RetryDeps {
  readonly config: Config
  readonly connections: Connections
  readonly breaker: Breaker
  readonly rotation: KeyRotation
  readonly ollama: Ollama
  readonly clock: Clock
  readonly random: () => number
  /** Called before each pause; `reason` is the failure's message without the key. */
  readonly retrying: (reason: string, failure: UpstreamFailure, waitMs: number) => void
  readonly failures: Counter | undefined
}
/** How long to wait before the next attempt, and what the caller is shown meanwhile. */
export interface Pause {
  readonly ms: number
  readonly phase: CallPhase
}

/** Decides after each failed attempt at one answer whether and when the next one is made. */
export class Retries {
  readonly #deps: RetryDeps
  readonly #model: ResolvedModel
  readonly #request: CompletionRequest
  /** On the clock. */
  readonly #deadline: number
  #attempt = 1
  #keyChanges = 0
  /** What may still be spent on waiting for open circuits. */
  #circuitWaitMs: number

  constructor(deps: RetryDeps, model: ResolvedModel, request: CompletionRequest, deadline: number) {
    this.#deps = deps
    this.#model = model
    this.#request = request
    this.#deadline = deadline
    this.#circuitWaitMs = deps.config.circuit_wait_ms
  }

  /** The pause until the first suspended key may be used; `undefined` where none is needed, or it takes too long. */
  keyPause({ waitMs }: Connection): Pause | undefined {
    const { clock, config } = this.#deps
    if (waitMs <= 0 || waitMs > config.retry_after_max_ms || clock.now() + waitMs >= this.#deadline) return undefined
    return this.#pause('retrying', waitMs, `every key of ${this.#model.provider} is rate-limited`)
  }

  /**
   * The pause before the next attempt; `undefined` when it can be made at once, with another key. Throws the failure,
   * with advice, when there is no next attempt.
   */
  async afterFailure(error: unknown, connection: Connection, hasAnswered: boolean): Promise<Pause | undefined> {
    const { provider } = this.#model
    if (!(error instanceof UpstreamFailure)) throw error
    this.#record(error)
    if (!hasAnswered && this.#canChangeKey(connection, error)) return undefined
    if (hasAnswered || error.retry === 'never')
      throw (await loadAdvice()).advise(error, provider, connection, this.#request)
    const circuit = error instanceof CircuitOpen ? error : undefined
    const waitMs = circuit ? circuit.waitMs : this.#backOff(error)
    if (this.#isLast(circuit, waitMs))
      throw (await loadAdvice()).advise(error, provider, connection, this.#request, circuit ? 1 : this.#attempt)
    // While the circuit is open nothing was called, so the attempt is not used up.
    if (circuit) this.#circuitWaitMs -= waitMs
    else this.#attempt++
    const reason = withoutKey(error.message, connection.key)
    this.#deps.retrying(reason, error, waitMs)
    return this.#pause(circuit ? 'circuit_open' : 'retrying', waitMs, reason)
  }

  /** What the caller is shown when a pause is over. */
  waitingPhase(): CallPhase {
    const { provider, model } = this.#model
    return { type: 'phase', phase: 'waiting_for_model', detail: `${provider}/${model}`, attempt: this.#attempt }
  }

  #pause(phase: CallPhase['phase'], ms: number, detail: string): Pause {
    const retryAt = new Date(Date.now() + ms).toISOString()
    return { ms, phase: { type: 'phase', phase, detail, retryAt, attempt: this.#attempt } }
  }

  #isLast(circuit: CircuitOpen | undefined, waitMs: number): boolean {
    const { clock, config } = this.#deps
    return (
      this.#attempt >= config.tries ||
      (circuit !== undefined && circuit.waitMs > this.#circuitWaitMs) ||
      clock.now() + waitMs >= this.#deadline
    )
  }

  #backOff(error: UpstreamFailure): number {
    const { config, random } = this.#deps
    const limits = {
      minMs: config.back_off_min_ms,
      maxMs: config.back_off_max_ms,
      retryAfterMaxMs: config.retry_after_max_ms,
    }
    return pause(this.#attempt, error.retryAfterSecs, limits, random())
  }

  #record(error: UpstreamFailure): void {
    const { connections, failures, ollama } = this.#deps
    const { provider } = this.#model
    // A manifest may name any provider beside an address; only known names become a metric label.
    if (!(error instanceof CircuitOpen))
      failures?.add(1, { provider: connections.driver(provider) ? provider : 'other', reason: error.reason })
    if (provider === 'ollama' && error.reason === 'network') ollama.forget()
  }

  #canChangeKey(connection: Connection, error: UpstreamFailure): boolean {
    return this.#suspendKey(connection, error) && ++this.#keyChanges < connection.circuits.length
  }

  /** Suspends a key that was refused or used too often. Whether another one can be used. */
  #suspendKey({ circuit, circuits }: Connection, { reason, retry, retryAfterSecs }: UpstreamFailure): boolean {
    const { config, rotation, breaker } = this.#deps
    if (circuits.length < 2 || (reason !== 'auth' && reason !== 'rate_limit')) return false
    // A quota that is used up does not come back in seconds.
    if (reason === 'auth' || retry === 'never') rotation.suspend(circuit, config.key_rest_ms, 'refused')
    else {
      const restMs =
        retryAfterSecs === undefined
          ? config.rate_limit_rest_ms
          : Math.min(retryAfterSecs * 1000, config.retry_after_max_ms)
      rotation.suspend(circuit, restMs, 'rate_limit')
    }
    return circuits.some((other) => !rotation.isSuspended(other) && !breaker.blocks(other))
  }
}
