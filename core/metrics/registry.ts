import type { Scope } from '../scope/scope.ts'
import type { Counter, Gauge, Histogram, Labels, Metrics } from './metric.ts'

interface Family {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Lines without the comments. */
  lines(): Iterable<string>
}

const escapeLabel = (value: string): string =>
  value.replace(/[\\"\n]/g, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`))
const escapeHelp = (value: string): string => value.replace(/[\\\n]/g, (sign) => (sign === '\n' ? '\\n' : '\\\\'))
const textOf = (value: number): string => (value === Infinity ? '+Inf' : value === -Infinity ? '-Inf' : String(value))

/** `{a="b"}`, or nothing. The text is the identity of a series. */
function seriesOf(labels: Labels | undefined): string {
  if (labels === undefined) return ''
  const names = Object.keys(labels)
  if (names.length > 1) names.sort()
  let pairs = ''
  for (const name of names) pairs += `${pairs === '' ? '' : ','}${name}="${escapeLabel(labels[name] ?? '')}"`
  return pairs === '' ? '' : `{${pairs}}`
}
function checkNames(labels: Labels): void {
  for (const name of Object.keys(labels))
    if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)) throw new Error(`"${name}" is not a label name`)
}

/** Series of one metric. Further ones are counted together, so that labels somebody else chooses fill no memory. */
const MAX_SERIES = 2000
const OVERFLOW: Labels = { otel_metric_overflow: 'true' }
/** The series of the labels, unless it would be one too many. */
function limitedSeries(labels: Labels | undefined, known: ReadonlyMap<string, unknown>): string {
  const series = seriesOf(labels)
  if (labels === undefined || known.has(series)) return series
  checkNames(labels)
  return known.size < MAX_SERIES ? series : seriesOf(OVERFLOW)
}

class Values implements Family, Counter, Gauge {
  readonly name: string
  readonly kind: 'counter' | 'gauge'
  readonly help: string
  #series = new Map<string, number>()
  constructor(kind: 'counter' | 'gauge', name: string, help: string) {
    this.kind = kind
    this.name = name
    this.help = help
    // A counter without labels is known to be zero before anything happened.
    if (kind === 'counter') this.#series.set('', 0)
  }
  add(amount = 1, labels?: Labels): void {
    if (!(amount >= 0)) throw new Error(`counter ${this.name} cannot go down`)
    const series = limitedSeries(labels, this.#series)
    if (series !== '' && this.#series.get('') === 0) this.#series.delete('')
    this.#series.set(series, (this.#series.get(series) ?? 0) + amount)
  }
  set(value: number, labels?: Labels): void {
    this.#series.set(limitedSeries(labels, this.#series), value)
  }
  *lines(): Iterable<string> {
    for (const [series, value] of this.#series) yield `${this.name}${series} ${textOf(value)}`
  }
}

class Buckets implements Family, Histogram {
  readonly kind = 'histogram'
  readonly name: string
  readonly help: string
  #bounds: readonly number[]
  #series = new Map<string, { labels: Labels; counts: Float64Array; sum: number; count: number }>()
  #plain: { labels: Labels; counts: Float64Array; sum: number; count: number }

  constructor(name: string, help: string, bounds: readonly number[]) {
    if (bounds.some((bound, at) => at > 0 && bound <= (bounds[at - 1] ?? -Infinity)))
      throw new Error(`bounds of ${name} must ascend`)
    this.name = name
    this.help = help
    this.#bounds = bounds
    this.#plain = this.#create({})
  }
  #create(labels: Labels) {
    return { labels, counts: new Float64Array(this.#bounds.length), sum: 0, count: 0 }
  }

  observe(value: number, labels?: Labels): void {
    let series = this.#plain
    if (labels !== undefined) {
      const key = limitedSeries(labels, this.#series)
      const known = this.#series.get(key)
      series = known ?? this.#create(this.#series.size < MAX_SERIES ? labels : OVERFLOW)
      if (!known) this.#series.set(key, series)
    }
    series.sum += value
    series.count++
    const bounds = this.#bounds
    for (let at = 0; at < bounds.length; at++)
      if (value <= (bounds[at] ?? 0)) {
        series.counts[at] = (series.counts[at] ?? 0) + 1
        return
      }
  }

  *lines(): Iterable<string> {
    const all =
      this.#series.size === 0 || this.#plain.count > 0 ? [this.#plain, ...this.#series.values()] : this.#series.values()
    for (const { labels, counts, sum, count } of all) {
      let below = 0
      for (const [at, bound] of this.#bounds.entries()) {
        below += counts[at] ?? 0
        yield `${this.name}_bucket${seriesOf({ ...labels, le: textOf(bound) })} ${below}`
      }
      yield `${this.name}_bucket${seriesOf({ ...labels, le: '+Inf' })} ${count}`
      yield `${this.name}_sum${seriesOf(labels)} ${textOf(sum)}`
      yield `${this.name}_count${seriesOf(labels)} ${count}`
    }
  }
}

class Observed implements Family {
  readonly kind: 'gauge' | 'counter'
  readonly name: string
  readonly help: string
  #read: Parameters<Metrics['observed']>[2]
  constructor(kind: 'gauge' | 'counter', name: string, help: string, read: Parameters<Metrics['observed']>[2]) {
    this.kind = kind
    this.name = name
    this.help = help
    this.#read = read
  }
  *lines(): Iterable<string> {
    for (const { value, labels } of this.#read()) yield `${this.name}${seriesOf(labels)} ${textOf(value)}`
  }
}

/**
 * Every metric of the process, by name. prom-client is not used: it adds 20 ms and 20 MB to a start and makes a counter
 * on the path of every request fifteen times slower (130 ns), and the metrics of a plugin have to end with its scope.
 */
export class MetricRegistry {
  #families = new Map<string, Family>()

  /** Metrics that live as long as the process. */
  readonly core: Metrics = this.#metrics(() => {})

  /** A counter of the core that is counted elsewhere and read when the metrics are requested. */
  counted(name: `svc_${string}_total`, help: string, read: Parameters<Metrics['observed']>[2]): void {
    this.#add(new Observed('counter', name, help, read), () => {})
  }

  /** A gauge of the core that is read when the metrics are requested. */
  watched(name: `svc_${string}`, help: string, read: Parameters<Metrics['observed']>[2]): void {
    this.#add(new Observed('gauge', name, help, read), () => {})
  }

  /** Metrics that are gone when the scope closes. */
  forPlugin(scope: Scope): Metrics {
    return this.#metrics((name) => {
      scope.own('metric', name, () => {
        this.#families.delete(name)
      })
    })
  }

  /** Prometheus text format 0.0.4. A family whose reading throws is omitted, with a comment. */
  render(): string {
    const out: string[] = []
    for (const family of [...this.#families.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      out.push(`# HELP ${family.name} ${escapeHelp(family.help)}`, `# TYPE ${family.name} ${family.kind}`)
      const at = out.length
      try {
        out.push(...family.lines())
      } catch {
        // One broken gauge must not hide the others from the scraper.
        out.splice(at, out.length, `# ${family.name} could not be read`)
      }
    }
    return `${out.join('\n')}\n`
  }

  #add<F extends Family>(family: F, own: (name: string) => void): F {
    if (!/^svc_[a-zA-Z0-9_]+$/.test(family.name)) throw new Error(`metric "${family.name}" must be named svc_…`)
    if (family.kind === 'counter' && !family.name.endsWith('_total'))
      throw new Error(`counter "${family.name}" must end in _total`)
    if (family.help.trim() === '') throw new Error(`metric "${family.name}" needs a help text`)
    if (this.#families.has(family.name)) throw new Error(`metric "${family.name}" exists already`)
    own(family.name)
    this.#families.set(family.name, family)
    return family
  }

  #metrics(own: (name: string) => void): Metrics {
    return {
      counter: (name, help) => this.#add(new Values('counter', name, help), own),
      gauge: (name, help) => this.#add(new Values('gauge', name, help), own),
      observed: (name, help, read) => {
        this.#add(new Observed('gauge', name, help, read), own)
      },
      histogram: (name, help, bounds) => this.#add(new Buckets(name, help, bounds), own),
    }
  }
}
