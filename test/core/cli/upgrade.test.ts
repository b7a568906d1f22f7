import { appendFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, it } from 'vitest'
import { firstReleaseHome } from '../../faults/migrate.ts'
import { startHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { runHere } from './here.ts'
import { startCli } from './process.ts'

it('a home of the first version is migrated and asked as a copy, beside the daemon that runs on it', async () => {
  const home = await firstReleaseHome()
  await appendFile(join(home, 'config.toml'), '\n[plugins]\ndisabled = ["workflows"]\n')
  const inFile = <T>(work: (db: Sqlite.Database) => T): T => {
    const db = new Sqlite(join(home, 'data', 'svc.db'))
    try {
      return work(db)
    } finally {
      db.close()
    }
  }
  const applied = (): unknown => inFile((db) => db.prepare('SELECT plugin, id FROM core_migration ORDER BY 1, 2').all())
  // This daemon has only some of the plugins: the tables of the others are those of the first version.
  const host = await startHost({ home, plugins: ['audit', 'agents', 'system'] })
  const before = applied()
  // A process of its own ends as soon as nothing keeps it alive.
  const { code, stdout, stderr } = await startCli(['upgrade', '--rehearse', '--json', '--home', home]).ended
  expect(stderr).toBe('')
  const found = JSON.parse(stdout)
  expect(found).toMatchObject({ problems: [], isCompared: true })
  expect(code).toBe(0)
  expect(found.migrations).toBeGreaterThan(20)
  expect(found.migrated).toEqual(expect.arrayContaining(['agents', 'chat', 'channels', 'sessions']))
  expect(found.requests).toBeGreaterThan(30)
  // What it does not know, it answers with 404; the rest is the same.
  expect(found.differences.filter(({ what }: Json) => !what.startsWith('answered 404'))).toEqual([])
  // A plugin that is disabled is so in the copy too, and both answer 404.
  expect(found.differences.map(({ path }: Json) => path)).not.toContain('/api/workflows')
  expect(found.differences.length).toBeLessThan(found.requests - 5)
  expect(applied()).toEqual(before)
  expect((await readdir(tmpdir())).filter((name) => name.startsWith('svc-rehearsal-'))).toEqual([])
  await host[Symbol.asyncDispose]()

  inFile((db) => db.exec('DROP TABLE sessions_message'))
  const broken = await runHere(['upgrade', '--rehearse', '--home', home])
  expect(broken.stdout).toMatch(/problem: the tables of "sessions" cannot be migrated: [^]*Do not upgrade/)
  expect(broken.code).toBe(1)
  expect((await runHere(['upgrade', '--home', home])).stderr).toContain('upgrade --rehearse')
  await rm(home, { recursive: true })
})
