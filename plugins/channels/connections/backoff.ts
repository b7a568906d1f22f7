export interface BackoffOptions {
  readonly minMs: number
  readonly maxMs: number
  /** From 0 to 1. */
  readonly random: () => number
}

/** Milliseconds before the next attempt: exponential with full jitter, and no less than the platform asks for. */
export function backoffMs(failures: number, retryAfterSecs: number | undefined, options: BackoffOptions): number {
  const { minMs, maxMs, random } = options
  const span = Math.min(maxMs, minMs * 2 ** Math.min(failures, 30))
  return Math.round(Math.max(span * random(), (retryAfterSecs ?? 0) * 1000))
}
