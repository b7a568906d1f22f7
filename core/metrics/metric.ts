/** Labels of one series, by name. Use few values: of more than 2,000 combinations the others are counted together. */
export type Labels = Readonly<Record<string, string>>
/** A number that only grows. */
export interface Counter {
  /** Adds the amount, 1 when absent. */
  add(amount?: number, labels?: Labels): void
}
/** A number that goes up and down. */
export interface Gauge {
  /** Replaces the value of the series. */
  set(value: number, labels?: Labels): void
}
/** Counts values by size. */
export interface Histogram {
  /** Counts one value, in the unit of the name. */
  observe(value: number, labels?: Labels): void
}

/** Metrics of a plugin, named `svc_…` in base units; gone when it unloads. */
export interface Metrics {
  /** The name must end in `_total`. */
  counter(name: `svc_${string}_total`, help: string): Counter
  /** A gauge that is set. */
  gauge(name: `svc_${string}`, help: string): Gauge
  /** A gauge that is read when the metrics are requested. */
  observed(
    name: `svc_${string}`,
    help: string,
    read: () => readonly { readonly value: number; readonly labels?: Labels }[],
  ): void
  /** Bounds are upper limits in the unit of the name, ascending. */
  histogram(name: `svc_${string}`, help: string, bounds: readonly number[]): Histogram
}
