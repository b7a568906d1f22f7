/** What a fault found: nothing in `problems` when the daemon stood it. Other fields are figures for people. */
export interface FaultReport { readonly problems: readonly string[]; readonly [figure: string]: unknown }
export interface FaultOptions {
  /** How long or how often, in the unit of the fault. */
  readonly rounds: number
  readonly seed: number
  /** Of the built daemon; from source otherwise. */
  readonly built: boolean
}

/** The value below which this part of the sorted figures lies. */
export function percentile(figures: readonly number[], part: number): number {
  const sorted = figures.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
}
