/** Time as this plugin sees it. Monotonic: a change of the wall clock moves nothing. */
export interface Clock {
  /** Milliseconds from an arbitrary start. */
  now(): number
  /** Runs once after a time unless the returned function is called before. Does not hold the process. */
  after(ms: number, run: () => void): () => void
}
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Settles after a time; rejects with the signal's reason when that aborts first. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', stop)
      resolve()
    })
    const stop = (): void => {
      cancel()
      reject(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
  })
}
