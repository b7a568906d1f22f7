import { existsSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { GuestProcess } from '../../../plugins/wasm/guest-process.ts'
import type { WasmRunner } from '../../../plugins/wasm/contract.ts'
import { Scope } from '../../../core/scope/scope.ts'
import type { Vault } from '../../../core/storage/vault.ts'
import { createLauncher } from '../../../core/process/launcher.ts'
import type { Spawn } from '../../../core/process/child.ts'
import type { Launcher } from '../../../core/process/launcher.ts'
import { createSpawn, works } from '../../../core/process/spawn.ts'
import { probe as trySecrets } from '../../../plugins/security/probes/secrets.ts'
import { probe as trySubprocess } from '../../../plugins/security/probes/subprocess.ts'
import { probe as tryGuests } from '../../../plugins/wasm/probe.ts'
import type { ProbeTools } from '../../../plugins/security/probes.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'

/** A daemon whose port is not open, and whose code lies in the repository. */
const withoutPort = { host: () => undefined } as Partial<ProbeTools['ownPort']> as ProbeTools['ownPort']
const protectedFolders: Spawn['protectedFolders'] = () => ({ code: [process.cwd()], hidden: ['/root'] })

describe('a probe', () => {
  it('sees an audit entry that was changed in the live database, and the daemon is not well then', async () => {
    await using host = await startHost({
      plugins: ['audit', 'agents', 'security', 'system'],
      config: { plugins: { security: { on_demand_ms: 0, probe_timeout_ms: 20_000 } } },
    })
    const row = async (): Promise<string> =>
      (await host.json('GET', '/api/security')).body.security_systems.merkle_audit_trail
    expect(await row()).toBe('active')
    const file = new Sqlite(join(host.home, 'data', 'svc.db'))
    try {
      const before = file.prepare('SELECT details FROM audit_entry WHERE id = 1').pluck().get()
      file.prepare('UPDATE audit_entry SET details = ? WHERE id = 1').run('nothing happened')
      expect([await row(), (await host.json('GET', '/api/health')).body.status]).toEqual(['failed', 'degraded'])
      expect((await host.json('GET', '/api/health/detail')).body.config_warnings.join()).toContain('audit trail')
      file.prepare('UPDATE audit_entry SET details = ? WHERE id = 1').run(before)
      expect([await row(), (await host.json('GET', '/api/health')).body.status]).toEqual(['active', 'ok'])
      await eventually(() => expect(existsSync(join(host.home, 'audit.anchor'))).toBe(true))
      await writeFile(join(host.home, 'audit.anchor'), 'changed')
      expect(await row()).toBe('failed')
      expect((await host.json('GET', '/api/health/detail')).body.config_warnings.join()).toMatch(
        /the trail reaches its anchor\. If that is known and meant: .*svc audit reset-anchor/,
      )
    } finally {
      file.close()
    }
  })

  it('brings no new secret with each of its runs, which the scanner of secrets would keep', async () => {
    const scanned = new Set<string>()
    const kept = new Map<string, string>()
    const vault = {
      read: async (name) => kept.get(name),
      write: async (name, secret) => {
        kept.set(name, secret)
        scanned.add(secret)
      },
      remove: async (name) => kept.delete(name),
    } as Vault
    for (let run = 0; run < 3; run++) {
      const { cases } = await trySecrets({ vault } as ProbeTools)
      expect(cases.filter(({ passed }) => !passed)).toEqual([])
    }
    expect(scanned.size).toBe(1)
  })

  it('calls the sandbox weaker where programs can look into the daemon, and only there', async () => {
    const scope = new Scope('probe-test')
    const tried = async (launcher?: () => Promise<Launcher>) => {
      const finding = await trySubprocess(
        {
          spawn: { ...createSpawn(scope, launcher ? { launcher } : {}), protectedFolders },
          ownPort: withoutPort,
        } as ProbeTools,
        AbortSignal.timeout(30_000),
      )
      expect(finding.cases.filter(({ passed }) => !passed)).toEqual([])
      return finding
    }
    const without =
      (...missing: readonly string[]) =>
      () =>
        createLauncher(
          async (command) => !command.some((word) => missing.some((each) => word.endsWith(each))) && works(command),
        )
    const own = await tried()
    expect(own.degraded).toBe(/isolation: none/.test(own.evidence))
    // As on a machine without bubblewrap, and in a container that forbids namespaces.
    for (const missing of [['/bwrap'], ['/bwrap', '/unshare']]) {
      const confined = await tried(without(...missing))
      expect(confined.evidence).toContain('isolation: landlock; network: none; not covered: programs have no network')
      expect(confined.degraded).toBe(false)
    }
    // Neither of the two: nothing of an agent runs then, unless the operator says so.
    const open = await tried(without('/bwrap', '/perl'))
    expect(open.evidence).toContain(
      'isolation: none; network: host; not covered: neither bubblewrap nor Landlock works',
    )
    expect(open.degraded).toBe(true)
    await scope.close(0)
  })

  it('counts what a program wrote by the files that are there: /tmp of its own is not that of the system', async () => {
    await using code = await temporaryFolder()
    const scope = new Scope('probe-test')
    const folders: Spawn['protectedFolders'] = () => ({ code: [tmpdir(), code.path], hidden: ['/root'] })
    const tried = async (launcher?: () => Promise<Launcher>) => {
      const finding = await trySubprocess(
        {
          spawn: { ...createSpawn(scope, launcher ? { launcher } : {}), protectedFolders: folders },
          ownPort: withoutPort,
        } as ProbeTools,
        AbortSignal.timeout(30_000),
      )
      return finding.cases.filter(({ passed }) => !passed).map(({ name }) => name)
    }
    expect(await tried()).toEqual([])
    // One that says it confines and does not.
    const none = await createLauncher(async () => false)
    const broken = await tried(async () => ({ ...none, isolation: { ...none.isolation, level: 'bubblewrap' } }))
    expect(broken).toContainEqual(expect.stringMatching(/^it wrote to [2-9] folders/))
    expect(await readdir(code.path)).toEqual([])
    await scope.close(0)
  })

  it('says which secret is left in the environment: a failure where the system lets it be overwritten', async () => {
    const scope = new Scope('probe-test')
    const tried = (exposed: ReturnType<Spawn['exposed']>) =>
      trySubprocess(
        {
          spawn: { ...createSpawn(scope), protectedFolders, exposed: () => exposed },
          ownPort: withoutPort,
        } as ProbeTools,
        AbortSignal.timeout(30_000),
      )
    const failed = await tried({ names: ['MY_API_KEY'], because: undefined })
    expect(failed.cases.filter(({ passed }) => !passed).map(({ name }) => name)).toEqual(['still there: MY_API_KEY'])
    const refused = await tried({ names: ['MY_API_KEY'], because: 'EACCES' })
    expect(refused.cases.filter(({ passed }) => !passed)).toEqual([])
    expect(refused).toMatchObject({
      degraded: true,
      evidence: expect.stringContaining('secrets are left in the environment the daemon was started with (EACCES)'),
    })
    await scope.close(0)
  })

  it('takes a slow machine for what it is, and not for guests that are not metered', async () => {
    using guests = new GuestProcess()
    // As if every guest took two seconds more: the clock of the machine that runs this test has no part in it.
    const moreMs = 2000
    const slowRunner: WasmRunner = {
      run: async (request) => {
        const { deadlineMs = 30_000, fuel = 0n } = request
        const isMetered = fuel < 2n ** 60n
        const end = await guests.run(isMetered ? { ...request, deadlineMs: 30_000 } : request)
        const isLate = isMetered && deadlineMs < moreMs
        return { ...end, ...(isLate && { outcome: 'deadline' }), durationMs: (isMetered ? 0 : deadlineMs) + moreMs }
      },
    }
    const { cases } = await tryGuests(slowRunner, AbortSignal.timeout(60_000))
    expect(cases.filter(({ passed }) => !passed)).toEqual([])
  })
})
