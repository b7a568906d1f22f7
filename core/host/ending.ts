import type { ConsolaInstance } from 'consola'

/** Waits for a part to end, up to a limit. One that is late or fails is logged and does not delay the others. */
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
