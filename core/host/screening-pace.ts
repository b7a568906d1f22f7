import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { forkOwn } from '../process/fork.ts'
import type { Pace } from '../screening/pace.ts'

/**
 * Screens a mebibyte in a process of its own: here it would hold up the daemon for as long as it takes, and what the engine compiles for
 * it stays. Rejects when that process ends without an answer, and with the signal's reason.
 */
export async function timeScreening(signal: AbortSignal): Promise<Pace> {
  signal.throwIfAborted()
  const file = ['../screening/pace.ts', './screening-pace.js', '../screening-pace.js']
    .map((name) => new URL(name, import.meta.url))
    .find((url) => existsSync(url))
  if (!file) throw new Error('the code that times the screening is missing: this installation is not complete')
  return await new Promise((resolve, reject) => {
    const stop = (): void => {
      own.kill()
      reject(signal.reason)
    }
    // What it says is our own code's.
    const own = forkOwn(
      fileURLToPath(file),
      (pace) => resolve(pace as Pace),
      () => {
        signal.removeEventListener('abort', stop)
        reject(new Error('the process that times the screening ended without an answer'))
      },
    )
    signal.addEventListener('abort', stop, { once: true })
  })
}
