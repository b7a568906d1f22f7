import { setTimeout as delay } from 'node:timers/promises'
import { isServerAway } from './failure.ts'

/** Between two attempts; each of them waits for the server by itself. */
const PAUSE_MS = 500

/**
 * Does `work` again until the server of the database answers. Throws what else it fails with, and what it failed with
 * last when the signal aborts. `away` is told before each further attempt.
 */
export async function untilAnswered<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  away?: (error: unknown) => void,
): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isServerAway(error) || signal.aborted) throw error
      away?.(error)
    }
    // The next attempt says what is wrong.
    await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined)
  }
}
