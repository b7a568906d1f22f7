/** A clock with timers, so that tests can move time by hand. */
export interface Clock {
  /** Milliseconds since an origin that the clock defines. */
  now(): number
  /** Runs once after a time unless the returned function is called before. Does not keep the process alive. */
  after(ms: number, run: () => void): () => void
}

/** Milliseconds since 1970: for times that people read or that have to outlast the process. */
export const wallClock: Clock = { now: () => Date.now(), after: startTimer }

/** For durations: does not jump when the wall clock is set. */
export const monotonicClock: Clock = { now: () => performance.now(), after: startTimer }

function startTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms)
  timer.unref()
  return () => clearTimeout(timer)
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

/**
 * Settles as the work does; rejects with the signal's reason when that aborts first. The work goes on, and its rejection
 * is then no longer reported: the race listens to it.
 */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const leave = (): void => reject(signal.reason)
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

/** A wall-clock time as ISO 8601 in UTC. */
export const toIso = (ms: number): string => new Date(ms).toISOString()
