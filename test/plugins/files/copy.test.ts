import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { KEY, startS3 } from '../../support/s3-server.ts'
import type { S3Server } from '../../support/s3-server.ts'
import { SHARED_VAULT_KEY, startHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'

/** `svc files copy`: there and back, on one home. */
let s3: S3Server
let home: string
const base = () => join(home, 'data/workspaces')
beforeAll(async () => {
  s3 = await startS3()
  home = await mkdtemp(join(tmpdir(), 'svc-files-'))
})
afterAll(async () => {
  await s3?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

const start = () => startHost({ home, listen: false, plugins: ['audit', 'usage', 'agents', 'cluster', 'files'] })
const copy = (...args: string[]) => runHere(['files', 'copy', ...args, '--home', home])
const counts = async (...args: string[]) => {
  const { code, stdout, stderr } = await copy(...args, '--json')
  if (code !== 0) throw new Error(stderr)
  const { agents, files, same, other, extra } = JSON.parse(stdout)
  return [agents, files, same, other, extra]
}
const mountAt = (mount: string) =>
  writeFile(
    join(home, 'config.toml'),
    `[plugins.files]\nmount = "${mount}"\n[plugins.files.s3]\nendpoint = "${s3.endpoint}"\nbucket = "${s3.bucket}"\n` +
      `access_key_id = "${KEY}"\nsecret_access_key = "${KEY}"\nmin_object_bytes = 100\nattempts = 1\n`,
    { mode: 0o600 },
  )
function edit<T>(work: (db: Sqlite.Database) => T): T {
  const db = new Sqlite(join(home, 'data/svc.db'))
  try {
    return work(db)
  } finally {
    db.close()
  }
}
const stored = (name: string) =>
  edit((db) => db.prepare('SELECT content, object_key FROM files_stored WHERE path = ?').get(name)) as
    | { readonly content: Buffer; readonly object_key: string | null }
    | undefined
const long = 'x'.repeat(2_000)

it('files go from the folder to the database, the bucket and back, and nothing else is replaced unasked', async () => {
  await mountAt('folder')
  let agent: string
  {
    await using host = await start()
    agent = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "filer"' })).body.agent_id
    for (const [name, content] of [
      ['a.txt', 'a'],
      ['deep/b.txt', long],
    ])
      await host.json('PUT', `/api/agents/${agent}/files/${name}`, { content })
    expect(await copy('database')).toMatchObject({ code: 7, stderr: expect.stringContaining('already uses') })
  }
  const folder = join(base(), agent)
  await mkdir(join(base(), 'f3a1f9b2-0000-4000-8000-000000000000'))
  await writeFile(join(folder, 'a:b'), 'x')

  // What there is: identity files, a.txt and deep/b.txt.
  const planned = await copy('database', '--dry-run')
  const total = Number(/^(\d+) files of 1 agents/.exec(planned.stdout)?.[1])
  expect(total).toBeGreaterThan(2)
  expect(planned.stderr).toMatch(/file "a:b" of agent .* is left out: .*colon/)
  expect(stored('a.txt')).toBeUndefined()
  expect(await counts('database')).toEqual([1, total, 0, 0, 0])
  expect(stored('a.txt')?.content.toString()).toBe('a')
  expect(await counts('database')).toEqual([1, 0, total, 0, 0])

  edit((db) => {
    db.exec(`UPDATE files_stored SET content = CAST('b' AS BLOB) WHERE path = 'a.txt'`)
    db.exec(`INSERT INTO files_stored (agent_id, path, size_bytes, modified_at, content)
      VALUES ('${agent}', 'later.txt', 1, '2026', CAST('l' AS BLOB))`)
    db.exec(`DELETE FROM files_stored WHERE path = 'deep/b.txt'`)
  })
  const refused = await copy('database')
  expect(refused).toMatchObject({ code: 5, stderr: expect.stringMatching(/a\.txt, .*later\.txt[^]*--replace/) })
  expect(stored('deep/b.txt')).toBeUndefined()
  expect(await counts('database', '--dry-run')).toEqual([1, 2, total - 2, 1, 1])
  expect(await counts('database', '--replace')).toEqual([1, 2, total - 2, 1, 1])
  expect(stored('later.txt')).toBeUndefined()

  await mountAt('database')
  s3.fault = (_, response) => {
    response.writeHead(403).end()
    return true
  }
  expect((await copy('s3')).code).not.toBe(0)
  s3.fault = undefined
  expect(stored('deep/b.txt')?.object_key).toBeNull()
  const large = (await counts('s3'))[1]
  expect(stored('deep/b.txt')?.object_key).toMatch(/^[0-9a-f]{64}\//)
  expect(stored('a.txt')?.object_key).toBeNull()
  expect(await counts('database')).toEqual([1, large, total - large, 0, 0])
  expect(stored('deep/b.txt')).toMatchObject({ object_key: null, content: Buffer.from(long) })
  await counts('s3')

  await mountAt('s3')
  edit((db) => db.exec(`DELETE FROM files_stored WHERE path = 'a.txt'`))
  expect((await copy('folder')).stderr).toContain('a.txt')
  await rm(join(folder, 'a:b'))
  await appendFile(join(folder, 'deep/b.txt'), 'changed')
  expect(await counts('folder', '--replace')).toEqual([1, 1, total - 2, 1, 1])
  expect(await readFile(join(folder, 'deep/b.txt'), 'utf8')).toBe(long)
  await rm(folder, { recursive: true })
  expect(await counts('folder')).toEqual([1, total - 1, 0, 0, 0])
  await mountAt('folder')
  await using host = await start()
  expect((await host.json('GET', `/api/agents/${agent}/files/deep/b.txt`)).body.content).toBe(long)
  expect((await host.json('GET', `/api/agents/${agent}/files/a.txt`)).status).toBe(404)
})

it('another daemon on the database is named, and a place that is none is refused', async () => {
  await using database = await createTestDatabase()
  const own = await mkdtemp(join(tmpdir(), 'svc-files-'))
  const config = { database_url: database.url, plugins: { cluster: { name: 'web-1' } } }
  await using other = await startHost({
    listen: false,
    plugins: ['audit', 'usage', 'agents', 'cluster', 'files'],
    config,
  })
  await other.app.greeted()
  const args = ['files', 'copy', 'database', '--home', own]
  const env = { SVC_DATABASE_URL: database.url, SVC_VAULT_KEY: SHARED_VAULT_KEY }
  // As it does every few seconds.
  const ended = new AbortController()
  const running = runHere(args, env).finally(() => ended.abort())
  while (!ended.signal.aborted) await database.query('UPDATE cluster_member SET beats = beats + 1')
  expect(await running).toMatchObject({ code: 7, stderr: expect.stringContaining('web-1') })
  const absent = await runHere(['files', 'copy', 's3', '--dry-run', '--home', own], env)
  expect(absent).toMatchObject({ code: 5, stderr: expect.stringContaining('[plugins.files.s3]') })
  expect((await runHere(['files', 'copy', 'tape', '--home', own], env)).code).toBe(2)
  await rm(own, { recursive: true })
})
