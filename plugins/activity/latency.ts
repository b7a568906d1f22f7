export interface Latency {
  readonly count: number
  readonly avg: number | null
  readonly p50: number | null
  readonly p90: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly max: number | null
}

/** Percentiles by the nearest rank: each is a time that was really measured. */
export function latencyOf(milliseconds: readonly number[]): Latency {
  const sorted = milliseconds.toSorted((a, b) => a - b)
  const rank = (part: number): number | null => sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? null
  const avg =
    sorted.length === 0 ? null : Math.round((sorted.reduce((sum, ms) => sum + ms, 0) / sorted.length) * 1000) / 1000
  return {
    count: sorted.length,
    avg,
    p50: rank(0.5),
    p90: rank(0.9),
    p95: rank(0.95),
    p99: rank(0.99),
    max: sorted.at(-1) ?? null,
  }
}
