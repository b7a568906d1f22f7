import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { omitUndefined } from '../../../core/schema/object.ts'
import { runHere } from '../../core/cli/here.ts'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { SHARED_VAULT_KEY } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'

/** `svc database copy`: a home on SQLite goes on on PostgreSQL. */
let fake: FakeProvider
beforeAll(async () => {
  fake = await startFakeProvider()
})
afterAll(async () => {
  await fake[Symbol.asyncDispose]()
})

async function makeHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'svc-copied-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  await writeFile(join(home, 'vault.key'), SHARED_VAULT_KEY, { mode: 0o600 })
  return home
}
const start = (home: string, database_url?: string): Promise<ChatStage> =>
  openChat({ home, fake, listen: false, config: { plugins: { drain_ms: 50 }, ...omitUndefined({ database_url }) } })
const copy = (home: string, url: string, ...more: string[]) =>
  runHere(['database', 'copy', url, '--home', home, ...more])
/** Changes rows of the home as a person could. */
function edit(home: string, sql: string): void {
  const db = new Sqlite(join(home, 'data', 'svc.db'))
  db.exec(sql)
  db.close()
}
const send = async (stage: ChatStage, message: string, key: string) => {
  const headers = { 'content-type': 'application/json', 'idempotency-key': key }
  const answer = await stage.post(`/api/agents/${stage.agent}/message`, { message }, { headers })
  return { status: answer.status, body: await answer.text() }
}

it('everything of a home on SQLite is there on PostgreSQL, and goes on', async () => {
  const home = await makeHome()
  await using database = await createTestDatabase()
  let first: Awaited<ReturnType<typeof send>>
  let agent: string
  {
    await using stage = await start(home)
    agent = await stage.spawn('second')
    first = await send(stage, 'one, with an emoji 🙂', 'a')
    expect(first.status).toBe(200)
    const { host } = stage
    await host.json('PUT', `/api/memory/agents/${agent}/kv/a`, { value: { large: 9_007_199_254_740_991 } })
    const memory = { agent_id: agent, content: 'The wallpaper is green', user_id: 'ann' }
    expect((await host.json('POST', '/api/memory', memory)).status).toBe(201)
    await eventually(async () => {
      expect((await host.json('GET', '/api/memory/stats')).body.without_vector).toBe(0)
    })
    expect((await host.json('POST', '/api/providers/openai/key', { key: 'sk-copied' })).status).toBe(200)
    const workflow = { name: 'asks', steps: [{ name: 'ask', agent_id: agent, prompt: 'one' }] }
    expect((await host.json('POST', '/api/workflows', workflow)).status).toBe(201)
    // This one is not answered before the daemon stops.
    const at = fake.requests.length
    fake.script({ text: '', fault: 'stall' })
    const waiting = send(stage, 'two', 'b')
    await fake.request(at)
    await host.app.host.unload('chat')
    expect((await waiting).status).toBe(503)
    expect(await copy(home, database.url)).toMatchObject({ code: 7, stderr: expect.stringContaining('already uses') })
  }
  const warnings: string[] = []
  const hear = (warning: Error): void => void warnings.push(warning.message)
  process.on('warning', hear)
  const copied = await copy(home, database.url)
  process.off('warning', hear)
  expect(warnings).toEqual([])
  expect(copied.code, copied.stderr).toBe(0)
  expect(copied.stdout).toMatch(
    /rows of \d+ tables copied[\s\S]*audit trail verifies: \d+ entries[\s\S]*Files of agents stay in data[\s\S]*database_url/,
  )

  {
    await using stage = await start(home, database.url)
    const { host } = stage
    expect(await send(stage, 'one, with an emoji 🙂', 'a')).toEqual(first)
    expect(await send(stage, 'two', 'b')).toMatchObject({ status: 200 })
    expect((await stage.session()).messages.map(({ content }) => content)).toMatchObject([
      'one, with an emoji 🙂',
      expect.any(String),
      'two',
      expect.any(String),
    ])
    expect((await host.json('GET', `/api/memory/agents/${agent}/kv/a`)).body.value).toEqual({
      large: 9_007_199_254_740_991,
    })
    const { body: found } = await host.json('GET', `/api/memory/agents/${agent}/search?q=wallpaper`)
    expect(found.memories).toMatchObject([{ content: 'The wallpaper is green' }])
    expect(
      await database.query('SELECT count(*) FROM memory_vector JOIN memory_sign ON place / 256 = memory_sign.id'),
    ).toBe('1')
    expect((await host.json('GET', '/api/workflows')).body).toHaveLength(1)
    const { body: verdict } = await host.json('GET', '/api/audit/verify')
    expect(verdict).toMatchObject({ status: 'valid', first_entry: 1 })
    expect(verdict.last_entry).toBeGreaterThan(verdict.first_entry)
    // Tables that number their rows go on behind the last one.
    expect(await database.query('SELECT count(*) = max(id) FROM usage_record')).toBe('t')
  }
  expect(await copy(home, database.url)).toMatchObject({ code: 1, stderr: expect.stringContaining('not empty') })
})

it('nothing is copied when one row cannot be or the tables are of another version; those of a plugin that is gone are named', async () => {
  const home = await makeHome()
  await using database = await createTestDatabase()
  {
    await using _ = await start(home)
  }
  edit(
    home,
    `INSERT INTO kv_pair (agent_id, key, value, updated_at)
      VALUES ('a', 'b', 'x' || char(0) || 'y', 'now'), ('a', 'c', CAST(x'78ff' AS TEXT), 'now'), ('a', 'd', '\ufffd', 'now')`,
  )
  const { code: unfit, stderr: texts } = await copy(home, database.url)
  expect(unfit).toBe(1)
  expect(texts).toContain('2 texts')
  expect(texts).toContain('"value" of "kv_pair" where agent_id = "a", key = "b" has a NUL character')
  expect(texts).toContain('"value" of "kv_pair" where agent_id = "a", key = "c" is not UTF-8')
  expect(texts).toMatch(/start svc on this home[\s\S]*nothing was copied/)
  edit(home, `DELETE FROM kv_pair; DELETE FROM core_migration WHERE plugin = 'kv'`)
  expect(await copy(home, database.url)).toMatchObject({ code: 1, stderr: expect.stringContaining('no plugin makes') })
  edit(home, `INSERT INTO core_migration SELECT 'kv', '999-later', checksum, applied_at FROM core_migration LIMIT 1`)
  expect(await copy(home, database.url)).toMatchObject({ code: 1, stderr: expect.stringContaining('another version') })
  expect(await database.query(`SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`)).toBe('0')
  expect(await copy(home, 'sqlite:other.db')).toMatchObject({ code: 2 })
  // From here on the tables are those of a plugin that nobody has.
  edit(home, `UPDATE core_migration SET plugin = 'gone' WHERE plugin = 'kv'; ALTER TABLE kv_pair RENAME TO gone_thing`)
  const { code, stdout } = await copy(home, database.url, '--json')
  expect(code).toBe(0)
  const report = JSON.parse(stdout)
  expect(report).toMatchObject({ left_out: ['gone'], audit: 'valid' })
  expect(report.tables).not.toHaveProperty('gone_thing')
  expect(await database.query(`SELECT count(*) FROM core_migration WHERE plugin = 'gone'`)).toBe('0')
})

it('a database file that is damaged, and a plugin that cannot be read, are named, and nothing is copied', async () => {
  const home = await makeHome()
  await using database = await createTestDatabase()
  {
    await using _ = await start(home)
  }
  await mkdir(join(home, 'plugins'), { recursive: true })
  const plugin = join(home, 'plugins', 'notes.ts')
  await writeFile(plugin, 'export default definePlugin({')
  const unread = await copy(home, database.url)
  expect(unread).toMatchObject({ code: 1, stderr: expect.stringContaining(plugin) })
  expect(unread.stderr).toMatch(/correct it, or remove it[\s\S]*nothing was copied/)
  await rm(plugin)

  edit(
    home,
    `CREATE TABLE kv_more (id INTEGER PRIMARY KEY); INSERT INTO kv_more VALUES (1), (2), (3);
      PRAGMA wal_checkpoint(TRUNCATE)`,
  )
  const file = join(home, 'data', 'svc.db')
  const db = new Sqlite(file)
  const { rootpage } = db.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'kv_more'`).get() as {
    rootpage: number
  }
  const size = db.pragma('page_size', { simple: true }) as number
  db.close()
  // The page says that it has one row.
  const handle = openSync(file, 'r+')
  const count = Buffer.from([0, 1])
  expect(readSync(handle, Buffer.alloc(2), 0, 2, (rootpage - 1) * size + 3)).toBe(2)
  writeSync(handle, count, 0, 2, (rootpage - 1) * size + 3)
  closeSync(handle)
  const damaged = await copy(home, database.url)
  expect(damaged).toMatchObject({ code: 1, stderr: expect.stringContaining(`The database ${file} is damaged (`) })
  expect(damaged.stderr).toContain('restore')
  expect(await database.query(`SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`)).toBe('0')
})

it('a database on which a daemon could not start, or that has something, is refused with what to do', async () => {
  const home = await makeHome()
  await using database = await createTestDatabase()
  {
    await using _ = await start(home)
  }
  const { name, url } = database
  const refused = async (to: string) => {
    const { code, stderr } = await copy(home, to)
    expect(code, stderr).toBe(1)
    return stderr
  }
  await database.query('CREATE SCHEMA other; CREATE TABLE other.job (id INT)')
  expect(await refused(url)).toContain('it has the table "job" in the schema "other"')
  await database.query('DROP SCHEMA other CASCADE')

  const role = `copier_${name}`
  await database.query(`CREATE ROLE ${role} LOGIN; GRANT CREATE ON SCHEMA public TO ${role}`)
  expect(await refused(url.replace('user=svc', `user=${role}`))).toContain(
    `GRANT CREATE ON DATABASE "${name}" TO "${role}"`,
  )
  await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)

  await database.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
  expect(await refused(url)).toMatch(/cannot be used: .*read-only transaction[\s\S]*default_transaction_read_only/)
  await database.query(`SET transaction_read_only = off; ALTER DATABASE ${name} RESET default_transaction_read_only`)

  await database.query(
    `CREATE DATABASE ${name}_ascii ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0 STRATEGY file_copy`,
  )
  expect(await refused(url.replace(name, `${name}_ascii`))).toMatch(/encoding SQL_ASCII[\s\S]*createdb -E UTF8/)
  await database.query(`DROP DATABASE ${name}_ascii WITH (FORCE)`)

  // Whoever forwards what is said breaks off when the server has the last word.
  const proxy = createServer((caller) => {
    const server = connect(join(database.host, '.s.PGSQL.5432'))
    let committed = false
    caller.on('data', (data) => {
      committed ||= data.includes('COMMIT')
      server.write(data)
    })
    server.on('data', (data) => (committed ? caller.destroy() : caller.write(data)))
    for (const [one, other] of [
      [caller, server],
      [server, caller],
    ] as const)
      one.on('error', () => undefined).on('close', () => other.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void proxy.close())
  const lost = await refused(`postgres://svc@127.0.0.1:${(proxy.address() as AddressInfo).port}/${name}`)
  expect(lost).toMatch(/not known[\s\S]*copy again/)
  expect(lost).not.toContain('nothing was copied')
  expect(await refused(url)).toContain('not empty')
})
