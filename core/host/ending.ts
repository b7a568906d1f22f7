import type { ConsolaInstance } from 'consola'

/**
 * Waits for the end of a part, but not for ever: one that does not end in time, or fails, is reported and holds
 * nobody up.
 */
export async function endWithin(name: string, end: () => unknown, ms: number, log: ConsolaInstance): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.error(`${name} did not end within ${ms} ms: going on without`)
      resolve()
    }, ms)
  })
  try {
    await Promise.race([end(), late])
  } catch (error) {
    log.error(`${name} did not end cleanly`, error)
  } finally {
    clearTimeout(timer)
  }
}
