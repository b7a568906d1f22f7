import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pack } from '../../support/plugin-registry.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { greeter, KEY } from './stage.ts'

/** What is installed at one daemon is installed at all of them, by the rules of each. */
let database: TestDatabase
let folder: string
let one: TestHost
let two: TestHost
let three: TestHost
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-plugin-sharing-'))
  database = await createTestDatabase()
  one = await start('one')
  two = await start('two')
  three = await start('three')
})
afterAll(async () => {
  for (const host of [three, two, one]) await host?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

function start(name: string, settings: object = {}, home?: string): Promise<TestHost> {
  return startHost({
    ...(home === undefined ? {} : { home }),
    plugins: ['audit', 'cluster', 'system', 'plugin-admin'],
    config: { api_key: KEY, database_url: database.url, plugins: { cluster: { name }, 'plugin-admin': settings } },
  })
}
const headers = { authorization: `Bearer ${KEY}` }
const call = (host: TestHost, method: string, path: string, body?: unknown) => host.json(method, path, body, headers)
async function install(host: TestHost, files: Record<string, string>): Promise<void> {
  const path = join(folder, 'plugin.tgz')
  await writeFile(path, pack(files))
  const answer = await call(host, 'POST', '/api/plugins/install', { path, accept_permissions: true, update: true })
  expect([answer.status, answer.body.error?.message]).toEqual([201, undefined])
}
const uninstall = (host: TestHost, name: string, more = {}) =>
  call(host, 'POST', '/api/plugins/uninstall', { name, ...more })
const greeting = async (host: TestHost): Promise<unknown> => (await call(host, 'GET', '/api/greeter')).body?.text
const hasPlugin = (host: TestHost, name: string): boolean =>
  host.app.daemon.plugins().some((plugin) => plugin.name === name)
interface Named {
  readonly name: string
}

async function problems(host: TestHost): Promise<Readonly<Record<string, readonly string[]>>> {
  const { body } = await call(host, 'GET', '/api/cluster')
  return Object.fromEntries(
    body.members.map((member: { name: string; problems: readonly string[] }) => [member.name, member.problems]),
  )
}
/** Runs in `setup`, which waits for it. */
const waiting = (files: Record<string, string>, code: string): Record<string, string> => ({
  ...files,
  'index.ts': `import fs from 'node:fs'\n${files['index.ts']}`.replace(
    /setup\(([^)]*)\) \{/,
    (_, given) => `async setup(${given}) {\n${code}`,
  ),
})

it('is installed and updated at one after the other, and each of them records it', async () => {
  const [lock, log] = [join(folder, 'lock'), join(folder, 'loaded')]
  const alone = `const lock = fs.openSync(${JSON.stringify(lock)}, 'wx')
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve, 1))
    fs.closeSync(lock)
    fs.unlinkSync(${JSON.stringify(lock)})
    fs.appendFileSync(${JSON.stringify(log)}, 'loaded ')`
  await install(one, waiting(greeter('hello'), alone))
  for (const host of [one, two, three]) await eventually(async () => expect(await greeting(host)).toBe('hello'))
  expect(await readFile(log, 'utf8')).toBe('loaded loaded loaded ')
  const { body } = await call(three, 'GET', '/api/plugins/greeter')
  expect(body.installed).toMatchObject({
    source: `archive:${join(folder, 'plugin.tgz')}`,
    accepted_permissions: ['route:/api/greeter'],
  })
  await install(two, greeter('updated', { version: '1.1.0' }))
  for (const host of [one, two, three]) await eventually(async () => expect(await greeting(host)).toBe('updated'))
  const { entries } = (await call(one, 'GET', '/api/audit/recent?limit=100&event_type=plugin_changed')).body
  expect(JSON.stringify(entries)).toContain('updated from 1.0.0 to 1.1.0')

  const svc = (...words: string[]) => runHere(['plugin', ...words, '--home', one.home], { SVC_API_KEY: KEY })
  const file = join(folder, 'plugin.tgz')
  await writeFile(file, pack(greeter('waited', { version: '1.2.0' })))
  expect(await svc('add', file, '--yes', '--update', '--wait')).toMatchObject({
    code: 0,
    stdout: 'plugin "greeter" 1.2.0 updated\ntwo: done\nthree: done\n',
  })
  for (const host of [one, two, three]) expect(await greeting(host)).toBe('waited')
  expect((await svc('reload', 'greeter')).stdout).toContain('In this home only: two, three keep the code')
})

it('stops where it fails first: the others keep what they have, and the reason is shown', async () => {
  const count = join(folder, 'count')
  const second = `fs.appendFileSync(${JSON.stringify(count)}, '.')
    if (fs.readFileSync(${JSON.stringify(count)}, 'utf8').length === 2) throw new Error('it is out of order')`
  await install(one, waiting(greeter('after', { version: '2.0.0' }), second))
  await eventually(async () => {
    const { two: at2 = [], three: at3 = [] } = await problems(one)
    expect([...at2, ...at3].toSorted()).toEqual([
      expect.stringMatching(/^plugin "greeter" 2\.0\.0 was not installed: Plugin "greeter" .*it is out of order/),
      expect.stringMatching(/^plugin "greeter" 2\.0\.0 was not installed: it failed at \w+: .*it is out of order/),
    ])
  })
  expect([await greeting(one), await greeting(two), await greeting(three)]).toEqual(['after', 'waited', 'waited'])
  expect((await readFile(count, 'utf8')).length).toBe(2)
  const status = await runHere(['cluster', 'status', '--home', one.home], { SVC_API_KEY: KEY })
  expect(status.stdout).toMatch(/plugin "greeter" 2\.0\.0 was not installed: .*out of order/)
  const { daemons } = (await call(three, 'GET', '/api/plugins/greeter/daemons')).body
  expect(daemons.map(({ state }: { state: string }) => state).toSorted()).toEqual(['done', 'failed', 'stopped'])

  await install(two, greeter('repaired', { version: '2.0.1' }))
  for (const host of [one, two, three]) await eventually(async () => expect(await greeting(host)).toBe('repaired'))
  await eventually(async () => expect(Object.values(await problems(one)).flat()).toEqual([]))
})

it('is removed at all of them, and its data only once it is gone everywhere', async () => {
  const refused = await uninstall(one, 'greeter', { delete_data: true })
  expect([refused.status, refused.body.error?.message]).toEqual([409, expect.stringMatching(/\(t\w+, t\w+\)/)])
  expect((await uninstall(three, 'greeter')).status).toBe(200)
  for (const host of [one, two, three]) await eventually(() => expect(hasPlugin(host, 'greeter')).toBe(false))
  await eventually(async () => expect((await uninstall(one, 'greeter', { delete_data: true })).status).not.toBe(409))
})

it('a home decides by its own file, and the others do not wait for it', async () => {
  const closed = await start('closed', { adopt: false })
  onTestFinished(() => closed[Symbol.asyncDispose]())
  const registry = await start('registry', { sources: ['registry'] })
  onTestFinished(() => registry[Symbol.asyncDispose]())
  const signed = await start('signed', { require_signature: true })
  onTestFinished(() => signed[Symbol.asyncDispose]())
  const small = await start('small', { max_archive_bytes: 1024 })
  onTestFinished(() => small[Symbol.asyncDispose]())
  await install(one, { ...greeter('new', { name: 'fresh' }), 'data.txt': randomText(4000) })
  for (const host of [two, three]) await eventually(async () => expect(await greeting(host)).toBe('new'))
  await eventually(async () =>
    expect(await problems(two)).toMatchObject({
      closed: [expect.stringContaining('plugins.plugin-admin.adopt is false')],
      registry: [expect.stringContaining('plugins.plugin-admin.sources permits no archives here')],
      signed: [expect.stringContaining('require_signature asks for a signature')],
      small: [expect.stringContaining('larger than max_archive_bytes (1024)')],
    }),
  )
  for (const host of [closed, registry, signed, small]) expect(hasPlugin(host, 'fresh')).toBe(false)
})

it('a daemon that joins, or was stopped, does at its start what it has missed', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-plugin-sharing-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const late = await start('late', {}, home)
  await eventually(async () => expect(await greeting(late)).toBe('new'))
  await late.stop()
  // Refused while another change of plugins is on its way.
  await eventually(async () => expect((await uninstall(one, 'fresh')).status).toBe(200))
  await install(one, greeter('other', { name: 'other' }))
  const again = await start('late', {}, home)
  onTestFinished(() => again.stop())
  await eventually(async () => expect(await greeting(again)).toBe('other'))
  expect(existsSync(join(home, 'plugins/fresh'))).toBe(false)
})

it('a daemon that looks while a plugin is being removed there does not install it again', async () => {
  const path = join(one.home, 'plugins/other')
  const gate = join(folder, 'let-in')
  await writeFile(gate, '')
  const held = `while (!fs.existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5))`
  await install(one, waiting(greeter('held', { name: 'other', version: '1.0.1' }), held))
  for (const host of [two, three]) await eventually(async () => expect(await greeting(host)).toBe('held'))
  await rm(gate)
  await using late = await start('let-in')
  await eventually(async () => expect(await database.query('SELECT holder FROM plugin_admin_turn')).not.toBe(''))

  await database.query('CREATE TABLE let_go (id int)')
  const locked = database.query(`DO $$ BEGIN
    LOCK TABLE plugin_admin_change IN SHARE ROW EXCLUSIVE MODE;
    FOR attempt IN 1..6000 LOOP
      IF EXISTS (SELECT 1 FROM let_go) THEN RETURN; END IF;
      PERFORM pg_sleep(0.01);
    END LOOP;
  END $$`)
  const waits = 'SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event'
  await eventually(async () => expect(await database.query(`${waits} = 'PgSleep'`)).toBe('1'))
  const removed = uninstall(one, 'other')
  await eventually(async () => expect(await database.query(`${waits}_type = 'Lock'`)).toBe('1'))
  expect(existsSync(path)).toBe(false)
  // What it has installed makes the others look.
  await writeFile(gate, '')
  const { id: own } = (await call(one, 'GET', '/api/cluster')).body.members.find(({ name }: Named) => name === 'one')
  const hasTurn = async () => (await database.query('SELECT holder FROM plugin_admin_turn')) === own
  await eventually(async () => expect(existsSync(path) || (await hasTurn())).toBe(true))
  await database.query('INSERT INTO let_go VALUES (1)')
  await locked
  expect((await removed).status).toBe(200)
  for (const host of [one, two, three, late]) await eventually(() => expect(hasPlugin(host, 'other')).toBe(false))
  const { entries } = (await call(one, 'GET', '/api/audit/recent?limit=100&event_type=plugin_changed')).body
  const added = entries.filter(({ details }: { details: string }) => /installation of plugin "other"/.test(details))
  expect(added).toHaveLength(5)
  await install(one, greeter('other', { name: 'other' }))
})

it('rows that no daemon wrote install nothing, and a turn of a dead daemon is taken over', async () => {
  await eventually(() => database.query("INSERT INTO plugin_admin_turn (id, holder) VALUES (1, 'a dead daemon')"))
  await database.query(`INSERT INTO plugin_admin_change (name, number, about, mac)
    SELECT 'forged', 1000, replace(about, '"other"', '"forged"'), mac FROM plugin_admin_change WHERE name = 'other'`)
  await database.query(`INSERT INTO plugin_admin_outcome
    SELECT 'elsewhere', 'elsewhere', name, change_id, 'of another version', '' FROM plugin_admin_outcome LIMIT 1`)
  await install(one, greeter('changed', { name: 'other', version: '1.0.1' }))
  for (const host of [two, three]) await eventually(async () => expect(await greeting(host)).toBe('changed'))
  for (const host of [two, three]) {
    await eventually(() => expect(host.log.join('\n')).toContain('was not written by a daemon on this database'))
    expect(hasPlugin(host, 'forged')).toBe(false)
    const named = host.log.filter((line) => /plugin_admin_outcome with home "elsewhere".* counts as unknown/.test(line))
    expect(named).toHaveLength(1)
  }
})

it('an older change that is put back is not adopted, and the next one is', async () => {
  for (const table of ['plugin_admin_change', 'plugin_admin_chunk'])
    await database.query(`CREATE TABLE saved_${table} AS SELECT * FROM ${table} WHERE name = 'other'`)
  await install(one, greeter('latest', { name: 'other', version: '1.0.2' }))
  for (const host of [two, three]) await eventually(async () => expect(await greeting(host)).toBe('latest'))
  await database.query(`UPDATE plugin_admin_change c SET about = s.about, mac = s.mac, number = 2000
    FROM saved_plugin_admin_change s WHERE c.name = s.name`)
  await database.query("DELETE FROM plugin_admin_chunk WHERE name = 'other'")
  await database.query('INSERT INTO plugin_admin_chunk SELECT * FROM saved_plugin_admin_chunk')
  // Another change makes all of them look.
  const more = Object.entries(greeter('more', { name: 'more' }))
  await install(
    one,
    Object.fromEntries(more.map(([file, text]) => [file, text.replaceAll('/api/greeter', '/api/more')])),
  )
  await eventually(async () => {
    const found = await problems(one)
    for (const name of ['one', 'two', 'three'])
      expect(found[name]).toContainEqual(expect.stringMatching(/"other" 1\.0\.1 was not installed: .* later change/))
  })
  for (const host of [one, two, three]) expect(await greeting(host)).toBe('latest')
  await install(two, greeter('next', { name: 'other', version: '1.0.3' }))
  for (const host of [one, two, three]) await eventually(async () => expect(await greeting(host)).toBe('next'))
  await eventually(async () => expect(JSON.stringify(await problems(one))).not.toContain('later change'))
})

it('a daemon that starts is ready once it has what the others have, or that has failed', async () => {
  const [gate, order] = [join(folder, 'gate'), join(folder, 'out-of-order')]
  await writeFile(gate, '')
  const held = `if (fs.existsSync(${JSON.stringify(order)})) throw new Error('it is out of order')
    while (!fs.existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5))`
  await install(one, waiting(greeter('gated', { name: 'other', version: '1.0.4' }), held))
  for (const host of [two, three]) await eventually(async () => expect(await greeting(host)).toBe('gated'))
  const part = 'plugins of the other daemons: '
  const ready = async (host: TestHost): Promise<number> => (await host.fetch('/api/ready')).status
  const warnings = async (host: TestHost): Promise<readonly string[]> =>
    (await call(host, 'GET', '/api/health/detail')).body.config_warnings.filter((line: string) => line.startsWith(part))

  await rm(gate)
  const late = await start('waits')
  onTestFinished(() => late[Symbol.asyncDispose]())
  expect([await ready(late), await warnings(late)]).toEqual([
    503,
    [`${part}those that were installed meanwhile are being installed here`],
  ])
  await writeFile(gate, '')
  await eventually(async () => expect(await ready(late)).toBe(200))
  expect([await greeting(late), await warnings(late)]).toEqual(['gated', []])

  await writeFile(order, '')
  const broken = await start('broken')
  await eventually(async () => expect(await ready(broken)).toBe(200))
  expect(await warnings(broken)).toEqual([
    expect.stringMatching(/: "other" is not as in the others: .*it is out of order/),
  ])
  await broken[Symbol.asyncDispose]()

  await rm(gate)
  await rm(order)
  const impatient = await start('impatient', { ready_wait_secs: 0 })
  onTestFinished(() => impatient[Symbol.asyncDispose]())
  await eventually(async () => expect(await ready(impatient)).toBe(200))
  expect(await warnings(impatient)).toEqual([expect.stringContaining('ready_wait_secs')])
  await writeFile(gate, '')
  await eventually(async () => expect(await warnings(impatient)).toEqual([]))
})

function randomText(bytes: number): string {
  return Array.from({ length: bytes }, () => Math.random().toString(36).at(-1)).join('')
}
