import type { ConsolaInstance } from 'consola'
import { endWithin } from '../host/ending.ts'

/** What each part gets to end at shutdown, beside the drain. */
const CLOSE_MS = 5_000

/**
 * The parts of a daemon. They end in reverse order; one that fails or takes too long is logged and does not hold up
 * the others.
 */
export class PartStack implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack
  readonly #log: ConsolaInstance
  #ending: Promise<void> | undefined

  constructor(log: ConsolaInstance, stack = new AsyncDisposableStack()) {
    this.#log = log
    this.#stack = stack
  }

  /** Disposes the part after those added later. Returns the part. */
  own<T extends Disposable | AsyncDisposable>(name: string, part: T, extraMs = 0): T {
    this.onEnd(
      name,
      () => (Symbol.asyncDispose in part ? part[Symbol.asyncDispose]() : part[Symbol.dispose]()),
      () => extraMs,
    )
    return part
  }

  /** Runs a step of the shutdown, before the parts that were added earlier end. `extraMs` is asked when it begins. */
  onEnd(name: string, end: () => unknown, extraMs: () => number = () => 0): void {
    this.#stack.defer(() => endWithin(name, end, CLOSE_MS + extraMs(), this.#log))
  }

  /** Hands everything to a new stack; disposing this one then ends nothing. */
  move(): PartStack {
    return new PartStack(this.#log, this.#stack.move())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return (this.#ending ??= this.#stack.disposeAsync())
  }
}
