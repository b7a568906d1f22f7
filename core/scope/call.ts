import { AsyncLocalStorage } from 'node:async_hooks'
import { runAs } from './actor.ts'

/** The calls that the present code runs in: a queued change must not wait for the call that requested it. */
const calls = new AsyncLocalStorage<Call | undefined>()

/** A unit of work that a scope waits for. */
export class Call {
  /** The plugin that runs it. */
  readonly plugin: string
  readonly #within: Call | undefined
  #ended = false
  #waiting: (() => void)[] | undefined

  constructor(plugin: string) {
    this.plugin = plugin
    // Ended calls are skipped, so that a chain never grows along a connection or a long loop.
    let within = calls.getStore()
    while (within?.ended) within = within.#within
    this.#within = within
  }

  get ended(): boolean {
    return this.#ended
  }
  /** The call this one runs in. */
  get outer(): Call | undefined {
    return this.#within
  }

  end(): void {
    this.#ended = true
    for (const wake of this.#waiting ?? []) wake()
    this.#waiting = undefined
  }

  /** Settles when the call has ended. */
  settled(): Promise<void> {
    if (this.#ended) return Promise.resolve()
    return new Promise((resolve) => {
      ;(this.#waiting ??= []).push(resolve)
    })
  }

  within<T>(work: () => T): T {
    return calls.run(this, work)
  }
}

/** From here on the present code, and everything it starts, runs in this call. */
export function enterCall(call: Call): void {
  calls.enterWith(call)
}

/** The calls the present code runs in that have not ended, innermost first. */
export function runningCalls(): readonly Call[] {
  const found: Call[] = []
  for (let call = calls.getStore(); call; call = call.outer) if (!call.ended) found.push(call)
  return found
}

/** Runs work that belongs to no call and no actor. */
export function outsideCalls<T>(work: () => T): T {
  return calls.run(undefined, () => runAs(undefined, work))
}
