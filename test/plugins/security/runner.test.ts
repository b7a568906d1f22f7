import { describe, expect, it } from 'vitest'
import { systemNames } from '../../../plugins/security/contract.ts'
import type { Finding, Probe, SystemName } from '../../../plugins/security/contract.ts'
import { ProbeRunner } from '../../../plugins/security/runner.ts'
import type { SystemRow } from '../../../plugins/security/runner.ts'

const good: Finding = {
  cases: [
    { name: 'passes', passed: true },
    { name: 'refuses', passed: true },
  ],
  evidence: 'fine',
}

/** All sixteen, each well unless told otherwise. */
function stage(
  special: Partial<Record<SystemName, Probe['run']>> = {},
  options: { readonly timeoutMs?: number; readonly left?: readonly SystemName[]; readonly leaving?: AbortSignal } = {},
) {
  let now = 0
  let runs = 0
  const changed: SystemRow[] = []
  const runner = new ProbeRunner({
    probes: () => {
      runs++
      return Promise.resolve(
        systemNames
          .filter((name) => !options.left?.includes(name))
          .map((system) => ({ system, run: special[system] ?? (() => Promise.resolve(good)) })),
      )
    },
    timeoutMs: options.timeoutMs ?? 2_000,
    staleMs: 180_000,
    now: () => now,
    leaving: options.leaving ?? new AbortController().signal,
    changed: (row) => {
      changed.push(row)
      return Promise.resolve()
    },
  })
  return {
    runner,
    changed,
    pass: (ms: number) => {
      now += ms
    },
    get runs() {
      return runs
    },
    status: (system: SystemName) => runner.rows().find((row) => row.system === system)?.status,
  }
}

describe('a run of the probes', () => {
  it('knows nothing before the first one, and all sixteen in their order after it', async () => {
    const { runner } = stage()
    expect(runner.rows().map(({ status }) => status)).toEqual(Array.from({ length: 16 }, () => 'unknown'))
    await runner.run()
    expect(runner.rows().map(({ system, status }) => [system, status])).toEqual(
      systemNames.map((name) => [name, 'active']),
    )
  })

  it('tells what a probe found, and never more than it found', async () => {
    const stuck = new Promise<never>(() => {})
    const { status, runner } = stage(
      {
        loop_guard: () =>
          Promise.resolve({
            cases: [
              { name: 'x', passed: true },
              { name: 'y', passed: false },
            ],
            evidence: '',
          }),
        session_repair: () => Promise.reject(new Error('broken')),
        ssrf_protection: () => {
          throw new Error('at once')
        },
        taint_tracking: () => Promise.resolve({ cases: [], evidence: '' }),
        ofp_hmac_auth: () => Promise.resolve({ ...good, degraded: true }),
        security_headers: () => Promise.resolve({ cases: [], evidence: 'no port', skipped: true }),
        health_redaction: () => Promise.resolve({ cases: [{ name: 'x', passed: false }], evidence: '', skipped: true }),
        wasm_dual_metering: () => stuck,
      },
      { timeoutMs: 20, left: ['manifest_signing'] },
    )
    await runner.run()
    expect(
      Object.fromEntries(
        (
          [
            'loop_guard',
            'session_repair',
            'ssrf_protection',
            'taint_tracking',
            'ofp_hmac_auth',
            'security_headers',
            'health_redaction',
            'wasm_dual_metering',
            'manifest_signing',
          ] as const
        ).map((name) => [name, status(name)]),
      ),
    ).toEqual({
      loop_guard: 'failed',
      session_repair: 'failed',
      ssrf_protection: 'failed',
      taint_tracking: 'failed',
      ofp_hmac_auth: 'degraded',
      security_headers: 'unknown',
      health_redaction: 'failed',
      wasm_dual_metering: 'failed',
      manifest_signing: 'unknown',
    })
    expect(runner.rows().find(({ system }) => system === 'wasm_dual_metering')?.failures).toEqual([
      'no end within 100 ms',
    ])
  })

  it('reports a probe that is late as unknown, tries it once more with more time, and alarms only then', async () => {
    const rows: (SystemRow | undefined)[] = []
    let attempts = 0
    let endsOn = 2
    const { changed, runner, status } = stage(
      {
        wasm_dual_metering: () => (++attempts >= endsOn ? Promise.resolve(good) : new Promise<never>(() => {})),
        // Probed after it, and before it is tried again.
        prompt_injection_scanning: () => {
          rows.push(runner.rows().find(({ system }) => system === 'wasm_dual_metering'))
          return Promise.resolve(good)
        },
      },
      { timeoutMs: 20 },
    )
    await runner.run()
    expect(rows[0]).toMatchObject({
      status: 'unknown',
      failures: [],
      evidence: 'no end within 20 ms; tried once more with 100 ms',
    })
    expect([attempts, status('wasm_dual_metering'), changed]).toEqual([2, 'active', []])
    endsOn = Infinity
    await runner.run()
    expect(changed.map(({ system, status: now }) => [system, now])).toEqual([['wasm_dual_metering', 'failed']])
    // A system that failed has not recovered because its probe is late again.
    await runner.run()
    expect([rows[2]?.status, changed.length]).toEqual(['failed', 1])
    endsOn = 0
    await runner.run()
    expect(changed.map(({ status: now }) => now)).toEqual(['failed', 'active'])
  })

  it('is shared by those who ask during it, and not repeated while it is fresh', async () => {
    const it = stage()
    await Promise.all([it.runner.refresh(10_000), it.runner.refresh(10_000), it.runner.run()])
    expect(it.runs).toBe(1)
    it.pass(9_999)
    await it.runner.refresh(10_000)
    expect(it.runs).toBe(1)
    it.pass(1)
    await it.runner.refresh(10_000)
    expect(it.runs).toBe(2)
  })

  it('is forgotten after three minutes', async () => {
    const { runner, pass, status } = stage()
    await runner.run()
    pass(180_000)
    expect(status('loop_guard')).toBe('active')
    pass(1)
    expect(status('loop_guard')).toBe('unknown')
  })

  it('tells of a failure once when it begins and once when it ends', async () => {
    let passed = false
    const { runner, changed } = stage({
      loop_guard: () => Promise.resolve({ cases: [{ name: 'x', passed }], evidence: '' }),
    })
    await runner.run()
    await runner.run()
    passed = true
    await runner.run()
    await runner.run()
    expect(changed.map(({ system, status }) => [system, status])).toEqual([
      ['loop_guard', 'failed'],
      ['loop_guard', 'active'],
    ])
  })

  it('that is cut off leaves what was known, also of the probe that failed of it, and ends', async () => {
    const stop = new AbortController()
    const { runner, changed, status } = stage(
      {
        subprocess_sandbox: () => {
          stop.abort(new Error('unloaded'))
          return Promise.reject(new Error('no program is started any more'))
        },
      },
      { leaving: stop.signal },
    )
    await runner.run()
    expect(
      ['security_headers', 'subprocess_sandbox', 'ssrf_protection'].map((name) => status(name as SystemName)),
    ).toEqual(['active', 'unknown', 'unknown'])
    await runner.run()
    expect([status('ssrf_protection'), changed]).toEqual(['unknown', []])
  })
})
