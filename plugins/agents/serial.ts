/** Runs work under one key in the order of the calls, work under different keys side by side. A failure stops nobody behind it. */
export function createSerial(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const tails = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    const before = tails.get(key)
    const mine = (async () => {
      // Whether the one before failed is for its own caller to hear.
      await before?.catch(() => undefined)
      return work()
    })()
    tails.set(key, mine)
    try {
      return await mine
    } finally {
      if (tails.get(key) === mine) tails.delete(key)
    }
  }
}
