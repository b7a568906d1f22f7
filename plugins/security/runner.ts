import { setImmediate as turn } from 'node:timers/promises'
import { holdGrowth, rehearse } from 'svc/internal'
import { systemNames } from './contract.ts'
import type { Finding, Probe, SystemName } from './contract.ts'
import type { Status } from './schema.ts'

export interface SystemRow {
  readonly system: SystemName
  readonly status: Status
  /** ISO 8601 UTC; `undefined` when no probe has run. */
  readonly checkedAt: string | undefined
  readonly durationMs: number
  readonly cases: number
  /** Names of the cases that did not pass. */
  readonly failures: readonly string[]
  readonly evidence: string
}
interface ProbedRow extends SystemRow {
  readonly at: number
  /** Whether the probe did not end in time, so that its row says nothing yet. */
  readonly late?: boolean
}
/** How much longer a probe may take when it is tried again: a busy machine refutes nothing. */
const RETRY_FACTOR = 5

export interface RunnerDeps {
  /** The probes, collected from the plugins that own the systems. */
  probes(): Promise<readonly Probe[]>
  readonly timeoutMs: number
  readonly staleMs: number
  /** Monotonic milliseconds. */
  now(): number
  /**
   * Aborts when the plugin or the daemon begins to stop: the port closes then, and no program is started. It ends a
   * running run; systems not yet probed keep their last result.
   */
  readonly leaving: AbortSignal
  /** Called with a system that began to fail or recovered in this run. */
  changed(row: SystemRow): Promise<void>
}

/** Runs the probes one after the other, one run at a time, and keeps the result of each. */
export class ProbeRunner {
  readonly #deps: RunnerDeps
  readonly #rows = new Map<SystemName, ProbedRow>()
  #running: Promise<void> | undefined
  #ranAt: number | undefined

  constructor(deps: RunnerDeps) {
    this.#deps = deps
  }

  /** Every system in the order of the interface. A result that is too old counts as `unknown`. */
  rows(): readonly SystemRow[] {
    const now = this.#deps.now()
    return systemNames.map((system) => {
      const found = this.#rows.get(system)
      if (!found) return unprobed(system, 'no probe has run')
      return now - found.at > this.#deps.staleMs ? { ...found, status: 'unknown' } : found
    })
  }

  /** Settles when there are results not older than this, and runs the probes if need be. */
  async refresh(maxAgeMs: number): Promise<void> {
    if (this.#running === undefined && this.#ranAt !== undefined && this.#deps.now() - this.#ranAt < maxAgeMs) return
    await this.run()
  }

  /** A call during a run shares it. */
  run(): Promise<void> {
    return (this.#running ??= this.#all().finally(() => {
      this.#running = undefined
    }))
  }

  async #all(): Promise<void> {
    const { leaving } = this.#deps
    using _ = holdGrowth()
    const probes = new Map((await this.#deps.probes()).map((probe) => [probe.system, probe]))
    const late: Probe[] = []
    for (const system of systemNames) {
      if (leaving.aborted) return
      const probe = probes.get(system)
      const row: ProbedRow = probe
        ? await this.#check(probe, 'first')
        : { ...unprobed(system, 'the plugin that owns it is not loaded'), at: this.#deps.now() }
      if (probe && row.late === true) late.push(probe)
      await this.#record(row)
      // Let other work run between the probes.
      await turn()
    }
    for (const probe of late) {
      if (leaving.aborted) return
      await this.#record(await this.#check(probe, 'retry'))
    }
    if (leaving.aborted) return
    this.#ranAt = this.#deps.now()
  }

  async #record(row: ProbedRow): Promise<void> {
    // A result from a daemon that is stopping means nothing.
    if (this.#deps.leaving.aborted) return
    const failed = this.#rows.get(row.system)?.status === 'failed'
    // A failed system has not recovered because its probe is late.
    if (failed && row.late === true) return
    this.#rows.set(row.system, row)
    if (failed !== (row.status === 'failed')) await this.#deps.changed(row)
  }

  async #check(probe: Probe, attempt: 'first' | 'retry'): Promise<ProbedRow> {
    const { leaving, now } = this.#deps
    const retryMs = this.#deps.timeoutMs * RETRY_FACTOR
    const timeoutMs = attempt === 'retry' ? retryMs : this.#deps.timeoutMs
    const from = now()
    let late = false
    const ended = AbortSignal.any([leaving, AbortSignal.timeout(timeoutMs)])
    const finding = await rehearse(() => settled(async () => probe.run(ended), ended)).catch(
      (error: unknown): Finding => {
        if (leaving.aborted || !ended.aborted)
          return { cases: [{ name: messageOf(error), passed: false }], evidence: 'the probe itself failed' }
        const reason = `no end within ${timeoutMs} ms`
        if (attempt === 'retry') return { cases: [{ name: reason, passed: false }], evidence: reason }
        late = true
        return { cases: [], evidence: `${reason}; tried once more with ${retryMs} ms`, skipped: true }
      },
    )
    const failures = finding.cases.filter(({ passed }) => !passed).map(({ name }) => name)
    return {
      system: probe.system,
      status: statusOf(finding, failures),
      checkedAt: new Date().toISOString(),
      durationMs: Math.round((now() - from) * 10) / 10,
      cases: finding.cases.length,
      failures,
      evidence: finding.evidence,
      at: now(),
      late,
    }
  }
}

function statusOf({ cases, skipped, degraded }: Finding, failures: readonly string[]): Status {
  if (failures.length > 0) return 'failed'
  if (skipped === true) return 'unknown'
  // A probe without cases proves nothing.
  if (cases.length === 0) return 'failed'
  return degraded === true ? 'degraded' : 'active'
}

function unprobed(system: SystemName, evidence: string): SystemRow {
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
