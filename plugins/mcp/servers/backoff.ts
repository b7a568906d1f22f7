export interface BackoffLimits {
  readonly restart_min_ms: number
  readonly restart_max_ms: number
}

/** The pause after the nth failure in a row: twice as long each time, and between half and all of it by chance. */
export function pauseAfter(failures: number, limits: BackoffLimits, random: () => number): number {
  const full = Math.min(limits.restart_max_ms, limits.restart_min_ms * 2 ** Math.min(failures - 1, 30))
  return Math.round(full * (0.5 + random() / 2))
}
