import type { MetricRegistry } from '../metrics/registry.ts'

/** The requests under way, and the two core metrics of those that are over. */
export class RequestCount {
  #running = 0
  #idle: (() => void)[] = []
  #totals = new Map<string, Map<number, number>>()
  #duration: { observe(value: number): void }

  constructor(metrics: MetricRegistry) {
    // Read when asked for: a label text per request would cost more than the rest of the counting.
    metrics.counted('svc_http_requests_total', 'HTTP requests answered, by method and status.', () =>
      [...this.#totals].flatMap(([method, statuses]) =>
        [...statuses].map(([status, value]) => ({ value, labels: { method, status: String(status) } })),
      ),
    )
    this.#duration = metrics.core.histogram(
      'svc_http_request_duration_seconds',
      'Seconds from the head of a request to the end of its answer.',
      [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60],
    )
  }

  get running(): number {
    return this.#running
  }
  begin(): void {
    this.#running++
  }

  end(method: string, status: number, ms: number): void {
    const shown = knownMethods.has(method) ? method : 'OTHER'
    const known = this.#totals.get(shown)
    if (known) known.set(status, (known.get(status) ?? 0) + 1)
    else this.#totals.set(shown, new Map([[status, 1]]))
    this.#duration.observe(ms / 1000)
    if (--this.#running === 0) for (const wake of this.#idle.splice(0)) wake()
  }

  /** Settles when nothing runs, or after the given time; says how many are left. */
  async idle(ms: number): Promise<number> {
    if (this.#running === 0) return 0
    let timer: NodeJS.Timeout | undefined
    await Promise.race([
      new Promise<void>((resolve) => this.#idle.push(resolve)),
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms)
      }),
    ])
    clearTimeout(timer)
    return this.#running
  }
}
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
