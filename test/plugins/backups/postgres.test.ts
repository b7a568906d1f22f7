import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase, findBinaries } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'

/** Backups of a database on a server are those of its own tools. */
const run = promisify(execFile)
const plugins = ['audit', 'agents', 'backups', 'cluster', 'kv']
const serve = ({ url }: TestDatabase, home: string): Promise<TestHost> =>
  startHost({ plugins, home, listen: false, config: { database_url: url } })
const verdict = async (host: TestHost) => (await host.json('GET', '/api/audit/verify')).body
const resets = async (host: TestHost): Promise<readonly string[]> =>
  (await host.json('GET', '/api/audit/recent?event_type=audit_anchor_reset')).body.entries.map(
    ({ details }: { details: string }) => details,
  )
async function makeHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'svc-dumped-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  return home
}
async function spawn(host: TestHost, name: string): Promise<void> {
  expect((await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n` })).status).toBe(201)
}

it('a dump is restored into a new database, where the trail is whole once each home has accepted its end', async () => {
  const [first, second, folder] = [await makeHome(), await makeHome(), await makeHome()]
  await using old = await createTestDatabase()
  const dump = join(folder, 'svc.dump')
  {
    await using one = await serve(old, first)
    await using two = await serve(old, second)
    await spawn(one, 'kept')
    await spawn(two, 'kept-too')
    await run(join(findBinaries(), 'pg_dump'), ['-Fc', '-h', old.host, '-U', 'svc', '-f', dump, old.name])
    await spawn(one, 'later')
    await spawn(two, 'later-too')
    for (const host of [one, two]) expect((await verdict(host)).status).toBe('valid')
  }
  await using restored = await createTestDatabase()
  await run(join(findBinaries(), 'pg_restore'), [
    '-1',
    '--no-owner',
    '-h',
    restored.host,
    '-U',
    'svc',
    '-d',
    restored.name,
    dump,
  ])
  {
    await using unaware = await serve(restored, first)
    expect(await verdict(unaware)).toMatchObject({
      status: 'invalid',
      reason: expect.stringContaining('does not reach its anchor'),
    })
    expect(unaware.log.join('\n')).toContain('audit reset-anchor')
  }
  for (const home of [first, second]) {
    const { code, stdout, stderr } = await runHere(['audit', 'reset-anchor', '--home', home])
    expect([code, stdout], stderr).toEqual([0, expect.stringContaining('the anchor is set aside')])
  }
  await using one = await serve(restored, first)
  await using two = await serve(restored, second)
  for (const host of [one, two]) expect(await verdict(host)).toMatchObject({ status: 'valid', anchor: 'known' })
  const names = (await two.json('GET', '/api/agents')).body.map(({ name }: { name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['kept', 'kept-too']))
  expect(names).not.toContain('later')
  expect(await resets(one)).toEqual([
    expect.stringMatching(/set anew at entry \d+; it was at entry \d+$/),
    expect.stringMatching(/set anew at entry \d+; it was at entry \d+$/),
  ])
  await expect(readFile(join(first, 'audit.anchor.replaced'))).rejects.toThrow('ENOENT')
  await spawn(one, 'new')
  expect((await verdict(two)).status).toBe('valid')
})

it('an anchor that was lost can be set anew, and that is recorded', async () => {
  const home = await makeHome()
  const start = () => startHost({ plugins, home, listen: false })
  await (await start())[Symbol.asyncDispose]()
  await rm(join(home, 'audit.anchor'))
  {
    await using host = await start()
    expect(await verdict(host)).toMatchObject({ status: 'invalid', anchor: 'missing' })
  }
  expect((await runHere(['audit', 'reset-anchor', '--home', home, '--json'])).stdout).toContain('"replaced": false')
  await using host = await start()
  expect(await verdict(host)).toMatchObject({ status: 'valid', anchor: 'known' })
  expect(await resets(host)).toEqual([expect.stringContaining('it was missing or not readable')])
})

it('every way to make or restore a backup says what to use instead', async () => {
  await using database = await createTestDatabase()
  const home = await makeHome()
  await using host = await serve(database, home)
  for (const [path, body] of [
    ['/api/backup', {}],
    ['/api/restore', { filename: 'svc_backup_20260131T120000000Z.zip' }],
  ] as const) {
    const { status, body: answer } = await host.json('POST', path, body)
    expect([status, answer.error.message]).toEqual([
      409,
      expect.stringMatching(/pg_dump.*pg_restore.*docs\/backup\.md/),
    ])
  }
  expect((await host.json('GET', '/api/backups')).body).toEqual({ backups: [], total: 0 })
  const stopped = await makeHome()
  for (const args of [['backup'], ['restore', 'x.zip'], ['restore', 'x.db']]) {
    const { code, stderr } = await runHere([...args, '--home', stopped], { SVC_DATABASE_URL: database.url })
    expect([args, code, stderr]).toEqual([args, 1, expect.stringMatching(/PostgreSQL[^]*pg_dump/)])
  }
})

it('a database that was restored without some table is refused, and the table is named', async () => {
  const home = await makeHome()
  await using database = await createTestDatabase()
  {
    await using _ = await serve(database, home)
  }
  await database.query('DROP TABLE kv_pair')
  await expect(serve(database, home)).rejects.toThrow(/lacks tables .*: kv_pair\. Restore it whole/)
})
