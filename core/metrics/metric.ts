export type Labels = Readonly<Record<string, string>>
export interface Counter {
  add(amount?: number, labels?: Labels): void
}
export interface Gauge {
  set(value: number, labels?: Labels): void
}
export interface Histogram {
  observe(value: number, labels?: Labels): void
}

/** Metrics of a plugin, named `svc_…` in base units; gone when it unloads. */
export interface Metrics {
  /** The name must end in `_total`. */
  counter(name: `svc_${string}_total`, help: string): Counter
  gauge(name: `svc_${string}`, help: string): Gauge
  /** A gauge read when the metrics are asked for. */
  observed(
    name: `svc_${string}`,
    help: string,
    read: () => readonly { readonly value: number; readonly labels?: Labels }[],
  ): void
  /** Bounds are upper limits in the unit of the name, ascending. */
  histogram(name: `svc_${string}`, help: string, bounds: readonly number[]): Histogram
}
