import { outsideCalls, runningCalls } from '../scope/call.ts'
import { SerialQueue } from '../scope/queue.ts'

/** Runs changes to plugins one at a time, in the order of their requests. */
export class ChangeQueue {
  readonly #queue = new SerialQueue()
  readonly #maxWaitMs: () => number

  /** `maxWaitMs`: how long a change waits for the request that caused it. */
  constructor(maxWaitMs: () => number) {
    this.#maxWaitMs = maxWaitMs
  }

  /**
   * `affected` returns the plugins that the change unloads; it is called when the change starts. If the caller runs
   * inside one of them, the change starts after the caller has ended and its answer is sent: otherwise each would wait
   * for the other.
   */
  add<T>(affected: () => readonly string[], change: () => Promise<T>): Promise<T> {
    const callers = runningCalls()
    return outsideCalls(() =>
      this.#queue.run(async () => {
        const names = affected()
        const ending = callers.filter((call) => names.includes(call.plugin)).map((call) => call.settled())
        if (ending.length > 0) await waitAtMost(Promise.all(ending), this.#maxWaitMs())
        return change()
      }),
    )
  }
}

async function waitAtMost(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
