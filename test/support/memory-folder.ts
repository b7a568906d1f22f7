import { existsSync, statfsSync } from 'node:fs'

const MEMORY = '/dev/shm'
const LEAST_BYTES = 4 * 2 ** 30

/** A folder in memory, where there is one with room for a run of tests. */
export function memoryFolder(): string | undefined {
  if (!existsSync(MEMORY)) return undefined
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize > LEAST_BYTES ? MEMORY : undefined
}
