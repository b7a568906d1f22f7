import { UpstreamFailure } from 'svc/sdk'
import { estimateUsage, isPlausible } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient } from 'svc/providers'
import type { Breaker } from './breaker.ts'
import type { Clock } from 'svc/internal'
import type { Config } from './config.ts'
import type { Connection } from './connection.ts'
import { checkEvent } from './driver-events.ts'

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

/** From the end of an answer until its connection is closed by force. */
const LEAVE_MS = 500

interface CallLimits {
  readonly firstEventMs: number
  readonly idleMs: number
  /** On the clock. */ readonly deadline: number
}

/**
 * One call of a driver, watched: it ends when the caller aborts, when the driver is silent for too long, at the
 * deadline and when its driver goes, also if the driver ignores all that. Exactly one `end` comes last and its usage
 * can be believed.
 */
class Call {
  readonly #provider: string
  readonly #request: CompletionRequest
  readonly #clock: Clock
  readonly #limits: CallLimits
  readonly #controller: AbortController
  readonly #events: AsyncIterator<CompletionEvent>
  #cancelWatch: () => void = () => {}
  #waitingSince: number
  #begun = false
  #ended = false
  #outputChars = 0
  #reject: ((error: unknown) => void) | undefined

  constructor(
    provider: string,
    client: ProviderClient,
    request: CompletionRequest,
    controller: AbortController,
    clock: Clock,
    limits: CallLimits,
  ) {
    this.#provider = provider
    this.#request = request
    this.#clock = clock
    this.#limits = limits
    this.#controller = controller
    this.#waitingSince = clock.now()
    controller.signal.addEventListener('abort', () => this.#reject?.(controller.signal.reason), { once: true })
    this.#events = client.complete(request, controller.signal)[Symbol.asyncIterator]()
    this.#watch()
  }

  /** The next event, or `undefined` after the end. */
  next(): Promise<CompletionEvent | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return resolve(undefined)
      if (this.#controller.signal.aborted) return reject(this.#controller.signal.reason)
      // Only time spent waiting for the driver counts, not time the reader takes.
      this.#waitingSince = this.#clock.now()
      this.#reject = reject
      this.#events.next().then((result) => {
        this.#waitingSince = Infinity
        if (result.done)
          return reject(
            new UpstreamFailure(this.#provider, `${this.#provider} ended its answer without an end`, {
              reason: 'cut',
              retry: 'later',
            }),
          )
        this.#begun = true
        try {
          resolve(this.#accept(checkEvent(this.#provider, result.value)))
        } catch (error) {
          reject(error)
        }
      }, reject)
    })
  }

  /** Ends the call, whatever state it is in. `left` runs when the driver has let go. */
  close(left: () => void): void {
    this.#cancelWatch()
    const end = async (): Promise<void> => {
      // Its failure is of no interest any more: the caller has the answer or the failure that counts.
      try {
        await this.#events.return?.()
      } catch {
        /* see above */
      } finally {
        left()
      }
    }
    const stop = (): void => this.#controller.abort(new Error('the answer is no longer needed'))
    if (!this.#ended) {
      stop()
      void end()
      return
    }
    // After the end the driver gets a moment to leave its connection in order, so that the next call can use it.
    let cancel = (): void => {}
    let isSettled = false
    const settled = (): void => {
      isSettled = true
      cancel()
      void end()
    }
    this.#events.next().then(settled, settled)
    // Nearly always it has left at once, and no timer is needed.
    setImmediate(() => {
      if (!isSettled) cancel = this.#clock.after(LEAVE_MS, stop)
    })
  }

  /** Counts what was written, and replaces a usage that cannot be believed. */
  #accept(event: CompletionEvent): CompletionEvent {
    if (event.type === 'text' || event.type === 'thinking') this.#outputChars += event.delta.length
    else if (event.type === 'call')
      this.#outputChars += event.call.name.length + JSON.stringify(event.call.args ?? null).length
    else {
      this.#ended = true
      if (!isPlausible(event.usage)) return { ...event, usage: estimateUsage(this.#request, this.#outputChars) }
    }
    return event
  }

  /** One timer for the whole call: it looks how long the wait is and sleeps for the rest of what is allowed. */
  #watch(): void {
    const now = this.#clock.now()
    const limit = this.#begun ? this.#limits.idleMs : this.#limits.firstEventMs
    const silent = now - this.#waitingSince
    if (now >= this.#limits.deadline) return this.#timeout('did not finish in the time an answer may take')
    if (silent >= limit)
      return this.#timeout(
        this.#begun ? `sent nothing for ${seconds(limit)}` : `did not begin to answer within ${seconds(limit)}`,
      )
    // Before the answer begins it looks as often as afterwards: the answer may begin just after a look.
    const rest = Math.min(limit - Math.max(silent, 0), this.#limits.idleMs)
    this.#cancelWatch = this.#clock.after(Math.max(1, Math.min(rest, this.#limits.deadline - now)), () => this.#watch())
  }

  #timeout(what: string): void {
    this.#controller.abort(
      new UpstreamFailure(this.#provider, `${this.#provider} ${what}`, { reason: 'timeout', retry: 'later' }),
    )
  }
}

const seconds = (ms: number): string => (ms >= 1000 ? `${Math.round(ms / 100) / 10} s` : `${Math.round(ms)} ms`)
