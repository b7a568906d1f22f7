import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, it } from 'vitest'
import { firstReleaseHome } from '../../faults/migrate.ts'
import { SHARED_VAULT_KEY, startHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
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
  expect(broken.stderr).toContain('recorded_requests = 100')
  expect(broken.stdout).toMatch(/problem: the tables of "sessions" cannot be migrated: [^]*Do not upgrade/)
  expect(broken.code).toBe(1)
  expect((await runHere(['upgrade', '--home', home])).stderr).toContain('upgrade --rehearse')
  await rm(home, { recursive: true })
})

it('what only the plugins have that the copy leaves out is no difference', async () => {
  const host = await startHost()
  const { stdout } = await runHere(['upgrade', '--rehearse', '--json', '--home', host.home])
  expect(JSON.parse(stdout)).toMatchObject({ problems: [], isCompared: true, differences: [] })
  expect(JSON.parse(stdout).requests).toBeGreaterThan(40)
  await host[Symbol.asyncDispose]()
})

const NO_AGENT = '00000000-0000-4000-8000-000000000000'
it('requests that the home answered are recorded without secrets, and asked again of the copy', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-recorded-'))
  const file = join(home, 'data', 'recorded-requests.json')
  const options = { home, plugins: ['audit', 'agents', 'kv', 'system'] }
  const known = 'key-that-the-daemon-knows-0123456789'
  const asOperator = { authorization: `Bearer ${known}` }
  const recording = { ...options, config: { api_key: known, plugins: { system: { recorded_requests: 5 } } } }
  const host = await startHost(recording)
  const { agent_id: id } = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "asked"' }, asOperator))
    .body
  const paths = [
    '/api/agents',
    `/api/agents/${id}`,
    `/api/agents/${id}`,
    `/api/agents/${NO_AGENT}`,
    '/api/agents?token=sk-secret-of-the-query-0123456789',
    `/api/agents?name=%6Bey-${known.slice(4)}`,
    `/api/memory/agents/${id}/kv`,
    '/api/agents?limit=1',
  ]
  for (const path of paths) await host.json('GET', path, undefined, asOperator)
  // Nobody's: it is refused.
  await host.json('GET', '/api/agents?limit=2')
  await host[Symbol.asyncDispose]()
  const written = await readFile(file, 'utf8')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(JSON.parse(written).map(({ path, status }: Json) => [path, status])).toEqual([
    ['/api/agents', 200],
    [`/api/agents/${id}`, 200],
    [`/api/agents/${NO_AGENT}`, 404],
    [`/api/memory/agents/${id}/kv`, 200],
    ['/api/agents?limit=1', 200],
  ])
  expect(written).not.toMatch(/secret|asked|0123456789/)

  const again = async () => JSON.parse((await runHere(['upgrade', '--rehearse', '--json', '--home', home])).stdout)
  expect(await again()).toMatchObject({ isCompared: false, recorded: 5, differences: [], problems: [] })
  await writeFile(file, written.replace(/("path":"\/api\/agents",.*?"shape":")\w+/, '$1other').replace('404', '200'))
  expect((await again()).differences).toEqual([
    { path: '/api/agents', what: 'would have other fields than when it was recorded' },
    { path: `/api/agents/${NO_AGENT}`, what: 'answered 200 when it was recorded, and would answer 404' },
  ])

  // The number is a limit, and without recording nothing stays.
  await (
    await startHost({ ...options, config: { plugins: { system: { recorded_requests: 2 } } } })
  )[Symbol.asyncDispose]()
  await (await startHost(options))[Symbol.asyncDispose]()
  expect(existsSync(file)).toBe(false)
  await rm(home, { recursive: true })
})

it("the home's own plugins are loaded with the copy, send nothing, and are named when they fail", async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-own-plugins-'))
  const beside = await mkdtemp(join(tmpdir(), 'svc-beside-'))
  const hits: string[] = []
  const outside = createServer((request, response) => {
    hits.push(request.url ?? '')
    response.end('{}')
  })
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve))
  const { port } = outside.address() as AddressInfo
  await (await startHost({ home, plugins: ['audit', 'agents', 'system'] }))[Symbol.asyncDispose]()
  const plugin = (name: string, setup: string): string => `
    import * as v from 'valibot'
    import { definePlugin, defineRoute } from 'svc/sdk'
    export default definePlugin({
      name: '${name}',
      version: '1.0.0',
      config: v.object({}),
      migrations: [{ id: '0001', sql: 'CREATE TABLE ${name}_row (a TEXT)' }],
      async setup({ routes, fetch }) {
        ${setup}
        return {}
      },
    })`
  const route = (name: string, answer: string): string =>
    `routes.add(defineRoute({ method: 'GET', path: '/api/${name}', summary: 'A row', auth: 'bearer', effect: 'read',
      cost: 1, returns: v.object({}), handle: () => ${answer} }))`
  const sends = `await fetch('http://127.0.0.1:${port}/out').then(() => { throw new Error('it was sent') }, () => undefined)`
  await mkdir(join(home, 'plugins', 'mine'), { recursive: true })
  await writeFile(join(home, 'plugins', 'mine', 'index.ts'), plugin('mine', `${sends}; ${route('mine', '({})')}`))
  await writeFile(join(beside, 'beside.ts'), plugin('beside', route('beside', "{ throw new Error('no row') }")))
  await appendFile(join(home, 'config.toml'), `\n[plugins]\npaths = [${JSON.stringify(beside)}]\n`)
  const again = async () => JSON.parse((await runHere(['upgrade', '--rehearse', '--json', '--home', home])).stdout)
  const fine = await again()
  expect(fine.migrated).toEqual(expect.arrayContaining(['mine', 'beside']))
  expect(fine.problems).toEqual(['GET /api/beside answers 500'])
  expect(hits).toEqual([])

  await writeFile(
    join(home, 'plugins', 'mine', 'index.ts'),
    plugin('mine', "throw new Error('it needs another version')"),
  )
  await writeFile(join(beside, 'beside.ts'), 'export default {')
  const { problems } = await again()
  expect(problems).toEqual([
    expect.stringMatching(/^the plugin "beside\.ts" is not loaded: .*beside\.ts:1/),
    expect.stringMatching(/^the plugin "mine" is not loaded: .*it needs another version/),
  ])
  expect(await readdir(join(home, 'plugins'))).toEqual(['mine'])
  await new Promise((resolve) => outside.close(resolve))
  for (const folder of [home, beside]) await rm(folder, { recursive: true })
})

it('a home on PostgreSQL is copied into the empty database that is named, and refused without one', async () => {
  await using database = await createTestDatabase()
  await using scratch = await createTestDatabase()
  const home = await mkdtemp(join(tmpdir(), 'svc-rehearse-server-'))
  await writeFile(join(home, 'config.toml'), `database_url = ${JSON.stringify(database.url)}\n`)
  await writeFile(join(home, 'vault.key'), SHARED_VAULT_KEY, { mode: 0o600 })
  // Without the other plugins their tables are not there yet.
  {
    await using host = await startHost({
      home,
      plugins: ['audit', 'agents', 'kv'],
      listen: false,
      config: { database_url: database.url },
    })
    expect((await host.json('POST', '/api/agents', { manifest_toml: 'name = "kept"' })).status).toBe(201)
  }
  const before = await database.query('SELECT plugin, id FROM core_migration ORDER BY 1, 2')
  const rehearse = async (...more: readonly string[]) =>
    await runHere(['upgrade', '--rehearse', '--json', '--home', home, ...more])
  expect((await rehearse()).stderr).toMatch(/is on a PostgreSQL server[^]*--database-url/)
  expect((await rehearse('--database-url', database.url)).stderr).toContain('names the database of the home')
  const { stdout, stderr, code } = await rehearse('--database-url', scratch.url)
  expect([code, stderr]).toEqual([0, ''])
  const found = JSON.parse(stdout)
  expect(found).toMatchObject({ problems: [], migrated: expect.arrayContaining(['sessions', 'kv']) })
  expect([found.migrations > 20, found.requests > 30]).toEqual([true, true])
  expect(await scratch.query('SELECT name FROM agents_agent')).toContain('kept')
  expect(await database.query('SELECT plugin, id FROM core_migration ORDER BY 1, 2')).toBe(before)
  // What is there is not touched.
  const again = await rehearse('--database-url', scratch.url)
  expect([again.code, again.stderr]).toEqual([1, expect.stringMatching(/pg_restore failed: .*already exists/s)])
  await rm(home, { recursive: true })
})
