import { setImmediate as turn } from 'node:timers/promises'
import { rehearse } from 'svc/internal'
import { systemNames } from './contract.ts'
import type { Finding, Probe, SystemName } from './contract.ts'
import type { Status } from './schema.ts'

export interface Row {
  readonly system: SystemName
  readonly status: Status
  /** ISO 8601 UTC; `undefined` when it was never tried. */
  readonly checkedAt: string | undefined
  readonly durationMs: number
  readonly cases: number
  /** What did not hold. */
  readonly failures: readonly string[]
  readonly evidence: string
}
interface Checked extends Row {
  readonly at: number
}

export interface RunnerParts {
  /** Who owns a system names its probe. */
  probes(): Promise<readonly Probe[]>
  readonly timeoutMs: number
  readonly staleMs: number
  /** Monotonic milliseconds. */
  now(): number
  /**
   * Aborts when the plugin or the daemon begins to end: the port closes then, and no program is started. A run that it
   * cuts short ends, and what was not tried by then stays as it was known.
   */
  readonly leaving: AbortSignal
  /** Told of a row whose failing began or ended with this run. */
  changed(row: Row): Promise<void>
}

/** Runs the probes one after the other, one run at a time, and keeps what each found. */
export class ProbeRunner {
  readonly #parts: RunnerParts
  readonly #rows = new Map<SystemName, Checked>()
  #running: Promise<void> | undefined
  #ranAt: number | undefined

  constructor(parts: RunnerParts) {
    this.#parts = parts
  }

  /** Every system in the order of the interface. What was found too long ago is unknown. */
  rows(): readonly Row[] {
    const now = this.#parts.now()
    return systemNames.map((system) => {
      const found = this.#rows.get(system)
      if (!found) return untried(system, 'no probe has run')
      return now - found.at > this.#parts.staleMs ? { ...found, status: 'unknown' } : found
    })
  }

  /** Settles when there are findings not older than this, for which it runs the probes when there are none. */
  async fresh(maxAgeMs: number): Promise<void> {
    if (this.#running === undefined && this.#ranAt !== undefined && this.#parts.now() - this.#ranAt < maxAgeMs) return
    await this.run()
  }

  /** A call during a run shares it. */
  run(): Promise<void> {
    return (this.#running ??= this.#all().finally(() => {
      this.#running = undefined
    }))
  }

  async #all(): Promise<void> {
    const { leaving } = this.#parts
    const probes = new Map((await this.#parts.probes()).map((probe) => [probe.system, probe]))
    for (const system of systemNames) {
      if (leaving.aborted) return
      const probe = probes.get(system)
      const row = probe
        ? await this.#check(probe)
        : { ...untried(system, 'the plugin that owns it is not loaded'), at: this.#parts.now() }
      // What a probe finds while everything around it ends is nothing.
      if (leaving.aborted) return
      const before = this.#rows.get(system)
      this.#rows.set(system, row)
      if ((before?.status === 'failed') !== (row.status === 'failed')) await this.#parts.changed(row)
      // Sixteen probes in a row would be one long task.
      await turn()
    }
    this.#ranAt = this.#parts.now()
  }

  async #check(probe: Probe): Promise<Checked> {
    const { leaving, now, timeoutMs } = this.#parts
    const from = now()
    const ended = AbortSignal.any([leaving, AbortSignal.timeout(timeoutMs)])
    const late = `no end within ${timeoutMs} ms`
    const finding = await rehearse(() => settled(async () => probe.run(ended), ended)).catch(
      (error: unknown): Finding => {
        if (leaving.aborted || !ended.aborted)
          return { cases: [{ name: messageOf(error), held: false }], evidence: 'the probe itself failed' }
        // Once it may be the machine that was busy; twice in a row it is the system.
        return this.#rows.get(probe.system)?.evidence === late
          ? { cases: [{ name: late, held: false }], evidence: late }
          : { cases: [], evidence: late, tried: false }
      },
    )
    const failures = finding.cases.filter(({ held }) => !held).map(({ name }) => name)
    return {
      system: probe.system,
      status: statusOf(finding, failures),
      checkedAt: new Date().toISOString(),
      durationMs: Math.round((now() - from) * 10) / 10,
      cases: finding.cases.length,
      failures,
      evidence: finding.evidence,
      at: now(),
    }
  }
}

function statusOf({ cases, tried, weaker }: Finding, failures: readonly string[]): Status {
  if (failures.length > 0) return 'failed'
  if (tried === false) return 'unknown'
  // A probe that tried nothing proves nothing.
  if (cases.length === 0) return 'failed'
  return weaker === true ? 'degraded' : 'active'
}

function untried(system: SystemName, evidence: string): Row {
  return { system, status: 'unknown', checkedAt: undefined, durationMs: 0, cases: 0, failures: [], evidence }
}

function settled<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort))
  })
}
const messageOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}`.slice(0, 300) : 'an unknown failure'
