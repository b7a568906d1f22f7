import { createHmac } from 'node:crypto'
import { appendFile, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import { openVault } from '../../../core/storage/vault-file.ts'
import { deriveKey } from '../../../core/storage/vault-key.ts'
import { eventually } from '../../support/eventually.ts'
import { SHARED_VAULT_KEY, startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { openTwoDaemons } from '../../support/two-daemons.ts'
import type { TwoDaemons } from '../../support/two-daemons.ts'
import { recorder } from '../../core/storage/engines.ts'

/** What is set over the API at one daemon reaches every file, told by `settings.changes`. */
const KEEP_ALIVE = 'http.sse_keep_alive_ms'
let stage: TwoDaemons
let database: TestDatabase
let one: TestHost
let two: TestHost
beforeAll(async () => {
  stage = await openTwoDaemons((created, name) => start(name, undefined, created))
  ;({ database, one, two } = stage)
})
afterAll(() => stage[Symbol.asyncDispose]())

function start(name: string, home?: string, { url } = database): Promise<TestHost> {
  return startHost({
    ...(home === undefined ? {} : { home }),
    plugins: ['audit', 'settings', 'system', 'cluster'],
    config: { database_url: url, plugins: { cluster: { name } } },
  })
}
const set = async (host: TestHost, key: string, value: unknown) => {
  const { status, body } = await host.json('POST', '/api/config/set', { key, value })
  expect([key, status, body]).toEqual([key, 200, expect.anything()])
}
const read = async (host: TestHost, key: string) => {
  const { body } = await host.json('GET', '/api/config')
  return key.split('.').reduce((inner, part) => inner?.[part], body.config)
}
const fileOf = (home: string) => readFile(join(home, 'config.toml'), 'utf8')
const warnings = async (host: TestHost): Promise<readonly string[]> => host.app.daemon.warnings()

it('holds at the others at once, is in their files, and each of them records it', async () => {
  await writeFile(join(two.home, 'config.toml'), '# a comment\n')
  await set(one, 'rate_limit.tokens_per_minute', 9_000_001)
  await eventually(async () => expect(await read(two, 'rate_limit.tokens_per_minute')).toBe(9_000_001))
  expect(await fileOf(two.home)).toContain('# a comment')
  await eventually(async () =>
    expect(
      (await two.json('GET', '/api/audit/recent?limit=50')).body.entries.map(
        ({ details }: { details: string }) => details,
      ),
    ).toContainEqual(expect.stringContaining('rate_limit.tokens_per_minute adopted, set at one by ')),
  )
})

it('two daemons that set one key at the same moment end with the same value', async () => {
  const key = 'rate_limit.tokens_per_minute'
  for (const round of [1, 2, 3]) {
    await Promise.all([set(one, key, 9_000_100 + round), set(two, key, 9_000_200 + round)])
    await eventually(async () => {
      const [last] = (await database.query(`SELECT daemon FROM settings_change WHERE key = '${key}'`)).split('\n')
      const expected = (last === 'one' ? 9_000_100 : 9_000_200) + round
      expect([await read(one, key), await read(two, key)]).toEqual([expected, expected])
    })
  }
})

it('what was set while a daemon was stopped, or before it joined, is adopted before it listens', async () => {
  const home = await temporaryHome()
  await set(one, KEEP_ALIVE, 20_001)
  const third = await start('third', home)
  expect(await fileOf(home)).toContain('sse_keep_alive_ms = 20001')
  await third.stop()
  await set(two, KEEP_ALIVE, 20_002)
  const again = await start('third', home)
  onTestFinished(() => again.stop())
  expect(again.announced.http.sse_keep_alive_ms).toBe(20_002)
})

it('a file that was edited after a key was set keeps its value until the key is set again', async () => {
  const [edited, before] = [await temporaryHome(), await temporaryHome()]
  await set(one, KEEP_ALIVE, 20_003)
  for (const home of [edited, before]) {
    const host = await start('third', home)
    await eventually(async () => expect(await fileOf(home)).toContain('sse_keep_alive_ms = 20003'))
    // The file is edited when it is recorded as adopted.
    await eventually(async () =>
      expect(await readFile(join(home, 'shared-settings.json'), 'utf8')).toContain(KEEP_ALIVE),
    )
    await host.stop()
    await writeFile(join(home, 'config.toml'), '[http]\nsse_keep_alive_ms = 20004\n')
  }
  // This one was edited before, the other one after the key is set.
  await utimes(join(before, 'config.toml'), 1, 1)
  await set(one, KEEP_ALIVE, 20_005)
  await appendFile(join(edited, 'config.toml'), '# later\n')
  // The clock of a file system may lag behind by more than the moment between the two.
  await utimes(join(edited, 'config.toml'), Date.now() / 1000 + 60, Date.now() / 1000 + 60)

  const late = await start('late', before)
  onTestFinished(() => late.stop())
  await eventually(async () => expect(await fileOf(before)).toContain('sse_keep_alive_ms = 20005'))
  const kept = await start('kept', edited)
  onTestFinished(() => kept.stop())
  await eventually(() =>
    expect(kept.log.join('\n')).toContain(`${KEEP_ALIVE} stays as config.toml of this home says: it was edited after`),
  )
  expect(await fileOf(edited)).toContain('sse_keep_alive_ms = 20004')
  await set(one, KEEP_ALIVE, 20_006)
  await eventually(async () => expect(await fileOf(edited)).toContain('sse_keep_alive_ms = 20006'))
})

it('what belongs to a machine stays there', async () => {
  await set(one, 'log_level', 'error')
  await set(one, KEEP_ALIVE, 20_007)
  await eventually(async () => expect(await fileOf(two.home)).toContain('sse_keep_alive_ms = 20007'))
  expect(await fileOf(two.home)).not.toContain('log_level')
})

/** A row as a daemon writes it: with the code that needs the key of the vault, or without. */
async function forge(key: string, value: unknown, withCode = true, at = '2100-01-01T00:00:00.000Z'): Promise<void> {
  await using opened = await openDatabase({ url: database.url, log: recorder().log })
  const source = { file: '/nowhere', given: SHARED_VAULT_KEY }
  const text = JSON.stringify(value)
  await (await openVault(opened, source)).forPlugin('settings').write(`value ${key}`, text)
  const row = [key, `forged ${key}`, 1000, 'one', 'svc', at]
  const secret = (await deriveKey(source, 'settings-change')) ?? ''
  const mac = createHmac('sha256', secret)
    .update(JSON.stringify([...row, text]))
    .digest('base64url')
  await database.query(`INSERT INTO settings_change VALUES ('${row.join("', '")}', ${withCode ? `'${mac}'` : 'NULL'})`)
}

it('a row can do what a request may, and nothing else; one without a code, or that cannot be read, does nothing', async () => {
  const before = await fileOf(two.home)
  await forge('outbound.allow', ['169.254.169.254'])
  await forge('rate_limit.no_such_key', 1)
  await forge('http.stream_status_ms', 'soon')
  await forge('http.socket_idle_ms', 1_900_000, false)
  await forge('http.headers_timeout_ms', 9_000, true, 'not a time')
  await set(one, KEEP_ALIVE, 20_008)
  await eventually(async () => {
    const found = (await warnings(two)).join('\n')
    expect(found).toMatch(/outbound\.allow was set at one, but not here: outbound\.allow is set in the file only/)
    expect(found).toMatch(/no_such_key was set at one, but not here: .*unknown key/)
    expect(found).toMatch(/http\.stream_status_ms was set at one, but not here/)
    expect(found).toMatch(/http\.socket_idle_ms was set at one, but not here: .*version before, or by none/)
  })
  const named = two.log.filter((line) =>
    line.includes('settings_change with key "http.headers_timeout_ms" is not adopted'),
  )
  expect(named).toHaveLength(1)
  expect(await fileOf(two.home)).toBe(before.replace('20007', '20008'))
  expect(await read(two, 'outbound.allow')).not.toEqual(['169.254.169.254'])
})

it('neither an old value nor an older row can be put back, and what is set after it counts', async () => {
  const key = 'rate_limit.tokens_per_minute'
  await set(one, key, 9_000_301)
  await eventually(async () => expect(await read(two, key)).toBe(9_000_301))
  await database.query(`CREATE TABLE saved_change AS SELECT * FROM settings_change WHERE key = '${key}'`)
  await database.query(`CREATE TABLE saved_vault AS SELECT * FROM core_vault WHERE name = 'value ${key}'`)
  await set(one, key, 9_000_302)
  await eventually(async () => expect(await read(two, key)).toBe(9_000_302))
  const putBack = async (row: string) => {
    await database.query(`UPDATE core_vault v SET nonce = s.nonce, sealed = s.sealed FROM saved_vault s
      WHERE v.plugin = s.plugin AND v.name = s.name`)
    await database.query(`UPDATE settings_change c SET ${row} FROM saved_change s WHERE c.key = s.key`)
  }
  let other = 20_100
  for (const [row, why] of [
    [`id = 'replayed', number = c.number + 1`, /written by a daemon of the version before, or by none/],
    [`id = 'without', number = c.number + 1, mac = NULL`, /written by a daemon of the version before, or by none/],
    [
      'id = s.id, number = s.number, mac = s.mac, changed_at = s.changed_at',
      /this home has a later change and keeps it/,
    ],
  ] as const) {
    await putBack(row)
    await set(one, KEEP_ALIVE, ++other)
    await eventually(async () => {
      expect(await read(two, KEEP_ALIVE)).toBe(other)
      for (const host of [one, two])
        expect((await warnings(host)).filter((text) => text.includes(key))).toEqual([expect.stringMatching(why)])
    })
    expect([await read(one, key), await read(two, key)]).toEqual([9_000_302, 9_000_302])
  }
  await set(two, key, 9_000_303)
  await eventually(async () => {
    expect(await read(one, key)).toBe(9_000_303)
    expect((await warnings(one)).filter((text) => text.includes(key))).toEqual([])
  })
})

it('a secret reaches the other file, and the database has it in the vault only', async () => {
  await set(one, 'api_key', 'canary-of-the-key')
  await eventually(async () => expect(await fileOf(two.home)).toContain('canary-of-the-key'))
  const tables = await database.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
  for (const table of tables.split('\n'))
    expect(await database.query(`SELECT row_to_json(t)::text FROM "${table}" AS t`)).not.toContain('canary')
})

async function temporaryHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'svc-shared-settings-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  return home
}
