export interface BackOff {
  readonly minMs: number
  readonly maxMs: number
  readonly retryAfterMaxMs: number
}

/**
 * Milliseconds to wait before the next try. `failed` is the number of tries that failed, `random` in [0, 1). The
 * provider's own wish counts; without one it is a random part of a span that doubles with each failure, so that many
 * callers do not retry at the same time.
 */
export function pause(failed: number, retryAfterSecs: number | undefined, limits: BackOff, random: number): number {
  if (retryAfterSecs !== undefined) return Math.min(Math.max(0, retryAfterSecs * 1000), limits.retryAfterMaxMs)
  return Math.round(random * Math.min(limits.maxMs, limits.minMs * 2 ** failed))
}
