import { UpstreamFailure } from 'svc/sdk'
import type { CompletionEvent, CompletionRequest } from 'svc/providers'
import type { Breaker } from './breaker.ts'
import { Call } from './call.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { Connection } from './connection.ts'

/** One attempt to get an answer, counted by the circuit breaker. */
export interface Attempt {
  /** The next event; `undefined` after the end. Rejects when the call fails. */
  next(): Promise<CompletionEvent | undefined>
  failed(error: unknown): void
  close(): void
}
export interface AttemptInput {
  readonly provider: string
  readonly connection: Connection
  readonly request: CompletionRequest
  /** On the clock. */ readonly deadline: number
  readonly signal: AbortSignal
}

/** Throws `CircuitOpen` without calling anything while the breaker blocks the provider. */
export function startAttempt(
  { breaker, clock, config }: { readonly breaker: Breaker; readonly clock: Clock; readonly config: Config },
  { provider, connection, request, deadline, signal }: AttemptInput,
): Attempt {
  const admission = breaker.admit(connection.circuit)
  if (typeof admission === 'number') throw new CircuitOpen(provider, config.breaker_failures, admission)
  const controller = new AbortController()
  const stop = (): void => controller.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  const release = connection.entry.enter(controller)
  const leave = (): void => {
    admission.left()
    signal.removeEventListener('abort', stop)
  }
  let call: Call
  try {
    const limits = { firstEventMs: config.first_event_ms, idleMs: config.idle_ms, deadline }
    call = new Call(provider, connection.client, request, controller, clock, limits)
  } catch (error) {
    leave()
    release()
    throw error
  }
  return {
    async next() {
      const event = await call.next()
      if (event?.type === 'end') admission.succeeded()
      return event
    },
    failed(error) {
      if (!signal.aborted && error instanceof UpstreamFailure && countsAgainstProvider(error)) admission.failed()
    },
    close() {
      leave()
      call.close(release)
    },
  }
}

const countsAgainstProvider = ({ retry, reason }: UpstreamFailure): boolean =>
  retry === 'later' && reason !== 'rate_limit'

/** The provider failed so often that it is not called for a while. */
export class CircuitOpen extends UpstreamFailure {
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
