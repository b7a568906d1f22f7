import { outsideCalls, runningCalls } from '../scope/call.ts'

/** Runs changes one at a time, in the order they were asked for. */
export class ChangeQueue {
  #last: Promise<unknown> = Promise.resolve()
  readonly #patienceMs: () => number

  /** `patienceMs`: how long a change waits for the request that asked for it. */
  constructor(patienceMs: () => number) {
    this.#patienceMs = patienceMs
  }

  /**
   * `affected` names the plugins the change will take down, asked when it is its turn. When the caller runs inside one of
   * them, the change starts after the caller has ended (its reply is sent): otherwise each would wait for the other.
   */
  add<T>(affected: () => readonly string[], change: () => Promise<T>): Promise<T> {
    const callers = runningCalls()
    const turn = outsideCalls(() =>
      this.#last.then(async () => {
        const names = affected()
        const ending = callers.filter((call) => names.includes(call.plugin)).map((call) => call.settled())
        if (ending.length > 0) await atMost(Promise.all(ending), this.#patienceMs())
        return change()
      }),
    )
    // The failure belongs to whoever asked; the next change happens all the same.
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

async function atMost(work: Promise<unknown>, ms: number): Promise<void> {
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
