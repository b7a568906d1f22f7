import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { Scope } from '../../../core/scope/scope.ts'
import { createSpawn } from '../../../core/process/spawn.ts'
import { probe as trySubprocess } from '../../../plugins/security/probes/subprocess.ts'
import type { ProbeTools } from '../../../plugins/security/probes.ts'
import { startHost } from '../../support/host.ts'

describe('a probe', () => {
  it('sees an audit entry that was changed in the file of the live database, and the daemon is not well then', async () => {
    await using host = await startHost({ plugins: ['audit', 'agents', 'security', 'system'], config: { plugins: { security: { on_demand_ms: 0, probe_timeout_ms: 20_000 } } } })
    const row = async (): Promise<string> => (await host.json('GET', '/api/security')).body.security_systems.merkle_audit_trail
    expect(await row()).toBe('active')
    const file = new Sqlite(join(host.home, 'data', 'svc.db'))
    try {
      const before = file.prepare('SELECT details FROM audit_entry WHERE id = 1').pluck().get()
      file.prepare('UPDATE audit_entry SET details = ? WHERE id = 1').run('nothing happened')
      expect([await row(), (await host.json('GET', '/api/health')).body.status]).toEqual(['failed', 'degraded'])
      expect((await host.json('GET', '/api/health/detail')).body.config_warnings.join()).toContain('audit trail')
      file.prepare('UPDATE audit_entry SET details = ? WHERE id = 1').run(before)
      expect([await row(), (await host.json('GET', '/api/health')).body.status]).toEqual(['active', 'ok'])
    } finally { file.close() }
  })

  it('calls the sandbox weaker where programs share the space of processes with the daemon', async () => {
    const scope = new Scope('probe-test')
    const spawn = createSpawn(scope)
    // Only what it says of this machine is another; the programs are real.
    const tools = { spawn: { ...spawn, isolation: () => Promise.resolve('group' as const) } } satisfies Pick<ProbeTools, 'spawn'>
    const finding = await trySubprocess(tools as unknown as ProbeTools, AbortSignal.timeout(30_000))
    expect(finding.weaker).toBe(true)
    expect(finding.cases.filter(({ held }) => !held)).toEqual([])
    expect((await trySubprocess({ spawn } as unknown as ProbeTools, AbortSignal.timeout(30_000))).weaker).toBe((await spawn.isolation()) !== 'sealed')
    await scope.close(0)
  })
})
