import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { omitUndefined } from '../../../core/schema/object.ts'
import { runHere } from '../../core/cli/here.ts'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
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
  const copied = await copy(home, database.url)
  expect(copied.code, copied.stderr).toBe(0)
  expect(copied.stdout).toMatch(/rows of \d+ tables copied[\s\S]*audit trail verifies: \d+ entries[\s\S]*database_url/)

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
  edit(home, `INSERT INTO kv_pair (agent_id, key, value, updated_at) SELECT 'a', 'b', 'x' || char(0) || 'y', 'now'`)
  expect(await copy(home, database.url)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/table "kv_pair" cannot be copied.*0x00[\s\S]*nothing was copied/),
  })
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
