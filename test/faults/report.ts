/** What a fault found: nothing in `problems` when the daemon stood it. Other fields are figures for people. */
export interface FaultReport {
  readonly problems: readonly string[]
  readonly [figure: string]: unknown
}
export interface FaultOptions {
  /** How long or how often, in the unit of the fault. */
  readonly rounds: number
  readonly seed: number
  /** The daemon of `dist/`; otherwise one built from the sources as they are now. */
  readonly built: boolean
}

/**
 * A figure that is beyond its bar, as a problem. Only the long form, which uses `dist/`, is held to times: beside
 * other tests they say little of the daemon.
 */
export function beyond(built: boolean, what: string, figure: number, most: number): readonly string[] {
  return built && figure > most ? [`${what}: ${Math.round(figure)}, and at most ${most} is promised`] : []
}

/** The value below which this part of the sorted figures lies. */
export function percentile(figures: readonly number[], part: number): number {
  const sorted = figures.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
}
