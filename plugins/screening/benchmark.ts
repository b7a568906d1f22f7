import { forkProcess } from 'svc/internal'
import type { Benchmark } from './processes/benchmark.ts'

/**
 * Screens 1 MiB in a separate process: here it would block the daemon, and the compiled code would stay in memory.
 * Rejects when that process ends without an answer, and with the signal's reason.
 */
export async function runBenchmark(signal: AbortSignal): Promise<Benchmark> {
  signal.throwIfAborted()
  return await new Promise((resolve, reject) => {
    const stop = (): void => {
      child.kill()
      reject(signal.reason)
    }
    const child = forkProcess('screening', 'benchmark', {
      // The message comes from our own code.
      onMessage: (result) => resolve(result as Benchmark),
      onExit() {
        signal.removeEventListener('abort', stop)
        reject(new Error('the process that times the screening ended without an answer'))
      },
    })
    signal.addEventListener('abort', stop, { once: true })
  })
}
