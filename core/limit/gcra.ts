/** Cost-aware token bucket, one number per key: the theoretical arrival time of the next conforming request. */
export interface Limiter {
  /** Takes `cost` tokens of the key, all or none. */
  take(key: string, cost: number): boolean
  /** Whether `cost` tokens could be taken now. */
  allows(key: string, cost: number): boolean
  /**
   * The theoretical arrival time of the key, which every charge moves on; `undefined` for a key that is full or was
   * never seen.
   */
  arrival(key: string): number | undefined
  /** The limit may change while it runs; what is used up stays used up. */
  resize(tokens: number): void
  /** Forgets every key that is full again; returns how many stay. Called by itself when the map fills up. */
  sweep(): number
  readonly size: number
}
export interface LimiterOptions {
  readonly tokens: number
  readonly windowMs: number
  readonly maxKeys: number
  /** Monotonic milliseconds: a change of the wall clock must not open or close the gate. */
  readonly now: () => number
}

export function createLimiter(options: LimiterOptions): Limiter {
  const { windowMs, maxKeys, now } = options
  const arrival = new Map<string, number>()
  let tokens = options.tokens
  let interval = windowMs / tokens

  const sweep = (): number => {
    const at = now()
    for (const [key, tat] of arrival) if (tat <= at) arrival.delete(key)
    return arrival.size
  }
  const room = (): void => {
    if (arrival.size < maxKeys || sweep() < maxKeys) return
    // Every key is in use: the oldest insertion goes, so that a flood of addresses cannot grow the map.
    for (const key of arrival.keys()) {
      arrival.delete(key)
      if (arrival.size < maxKeys) return
    }
  }
  const next = (key: string, cost: number, at: number): number => {
    const tat = arrival.get(key)
    return (tat === undefined || tat < at ? at : tat) + cost * interval
  }
  // Sums of intervals are not exact in floating point: a millionth of a millisecond must not refuse the last token.
  const conforms = (tat: number, at: number): boolean => tat - at <= windowMs + 1e-6

  return {
    take(key, cost) {
      const at = now()
      const tat = next(key, cost, at)
      if (!conforms(tat, at)) return false
      if (arrival.size >= maxKeys && !arrival.has(key)) room()
      arrival.set(key, tat)
      return true
    },
    allows(key, cost) {
      const at = now()
      return conforms(next(key, cost, at), at)
    },
    arrival: (key) => arrival.get(key),
    resize(count) {
      if (count === tokens) return
      const scale = tokens / count
      const at = now()
      // The used part of the window stays the same number of tokens.
      for (const [key, tat] of arrival) if (tat > at) arrival.set(key, at + (tat - at) * scale)
      tokens = count
      interval = windowMs / tokens
    },
    sweep,
    get size() {
      return arrival.size
    },
  }
}
