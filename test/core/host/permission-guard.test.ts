import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AcceptedPermissionsFile } from '../../../core/host/accepted-permissions.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pluginText, routeText, writePlugin } from '../../support/plugin-folder.ts'

let host: TestHost
beforeAll(async () => {
  host = await startHost({
    plugins: ['clock'],
    listen: false,
    fetch: async (url) => {
      throw new Error(`sent to ${String(url)}`)
    },
  })
  const members = `migrations: [{ id: '1', sql: 'CREATE TABLE other_pair (id TEXT)' }],`
  await host.app.host.load(await writePlugin(join(host.home, 'other'), pluginText('other', { members })))
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

let count = 0
const cause = (error: unknown): string => (error instanceof Error ? error.message : String(error))
/** Loads a plugin whose setup does this. Returns `loaded`, or the error. */
async function attempt(setup: string, uses: string, members = ''): Promise<string> {
  const name = `guarded-${++count}`
  const folder = join(host.home, 'guarded', name)
  await writePlugin(folder, pluginText(name, { setup: `${setup}; return {}`, members: `${uses} ${members}` }))
  return await host.app.host.load(folder).then(() => 'loaded', cause)
}

const tool = `defineTool({ name: 'roll_dice', description: 'x', risk: 'read', input: v.object({}), run: async () => '' })`
const call = `{ agentId: 'a', agentName: 'a', sessionId: 's', turnId: 't', callId: 'c', signal: ctx.signal }`
const source = `{ name: 'tokens', find: () => undefined }`
/** What is done, the permission that is missing, and how it is declared. */
const actions: readonly (readonly [action: string, permission: string, uses: string])[] = [
  [routeText('/api/dice/roll', 'x'), 'route:/api/dice/roll', `routes: ['/api/dice/*']`],
  [`ctx.hooks.on(notify('daemon:listening'), () => {})`, 'hook:daemon:listening', `hooks: ['daemon:listening']`],
  [`await ctx.hooks.emit(notify('clock:other'), {})`, 'hook:clock:other', `hooks: ['clock:*']`],
  [`ctx.tools.add(${tool})`, 'tool:roll_dice', `tools: ['roll_dice']`],
  [`await ctx.tools.call('current_time', {}, ${call})`, 'tool:current_time', `tools: ['current_time']`],
  [`await ctx.admit('https://api.example.org/x')`, 'host:api.example.org', `hosts: ['*.example.org']`],
  [
    `await ctx.connect({ host: 'irc.example.org', port: 6697 })`,
    'host:irc.example.org:6697',
    `hosts: ['irc.example.org:6697']`,
  ],
  [`await ctx.webSocket('wss://chat.example.org/x')`, 'host:chat.example.org', `hosts: ['chat.example.org']`],
  [`await ctx.db.all\`SELECT 1 AS one\``, 'tables', 'tables: true'],
  [`await ctx.vault.write('key', 'value')`, 'secret:key', `secrets: ['key']`],
  [`await ctx.vault.read('key')`, 'secret:key', 'secrets: true'],
  [`ctx.jobs.every('tidy', 60_000, async () => {})`, 'jobs', 'jobs: true'],
  [`ctx.credentials.accept(${source})`, 'credentials', 'credentials: true'],
]

describe('a plugin that declares what it uses', () => {
  it.each(actions)('%s needs %s', async (action, permission, uses) => {
    expect(await attempt(action, 'uses: {},')).toMatch(
      new RegExp(`may not use "${RegExp.escape(permission)}": it does not declare it. Add uses: \\{ `),
    )
    expect(await attempt(action, `uses: { ${uses} },`)).toMatch(/^loaded$|this daemon has no network \(\S+:\d+:\d+\)$/)
    await host.app.host.unload(`guarded-${count}`)
  })

  it('sends requests to its hosts only', async () => {
    const send = `await ctx.fetch('https://api.example.org/x')`
    expect(await attempt(send, `uses: { hosts: ['example.org'] },`)).toContain('host:api.example.org')
    expect(await attempt(send, `uses: { hosts: ['api.example.org'] },`)).toContain('sent to https://api.example.org/x')
    for (const open of [
      `await ctx.connect({ host: 'API.example.org', port: 443 })`,
      `await ctx.webSocket('wss://api.example.org/x')`,
    ]) {
      expect(await attempt(open, `uses: { hosts: ['example.org'] },`)).toContain('host:api.example.org')
      expect(await attempt(open, `uses: { hosts: ['api.example.org:443'] },`)).toContain('this daemon has no network')
    }
    const both = `outbound: 'both', uses: { hosts: ['example.org'] },`
    expect(await attempt(send.replace('ctx.', 'ctx.operator.'), both)).toContain('host:api.example.org')
  })

  it('starts its programs only, and confined', async () => {
    const start = (more: string) => `await ctx.spawn.start({ command: 'git', cwd: '/nowhere', ${more} })`
    expect(await attempt(start(''), 'uses: {},')).toContain(`Add uses: { programs: ['git'] }`)
    for (const more of [`trust: 'operator'`, 'unconfined: true'])
      expect(await attempt(start(more), `uses: { programs: ['git'] },`)).toContain('its programs are confined')
    expect(await attempt(start(''), `uses: { programs: ['git'] },`)).not.toMatch(/may not use|confined/)
  })

  it('keeps its own values and hooks without declaring them', async () => {
    const own = `await ctx.storage.setItem('a', 1); ctx.log.info('hello'); await ctx.hooks.emit(notify('guarded-x:it'), 1)`
    expect(await attempt(own.replace('guarded-x', `guarded-${count + 1}`), 'uses: {},')).toBe('loaded')
  })

  it('shows what it declares in its status', async () => {
    expect(await attempt('', `uses: { jobs: true, hosts: ['b.example', 'a.example'] },`)).toBe('loaded')
    const status = host.app.daemon.plugins().find(({ name }) => name === `guarded-${count}`)
    expect(status).toMatchObject({ access: 'declared', permissions: ['host:a.example', 'host:b.example', 'jobs'] })
    expect(host.app.daemon.plugins().find(({ name }) => name === 'clock')).toMatchObject({ access: 'built-in' })
  })

  it('is refused with a misspelt permission, and with the name of a built-in plugin', async () => {
    expect(await attempt('', `uses: { host: ['a.example'] },`)).toContain('uses.host')
    const folder = join(host.home, 'guarded', 'clock')
    await host.app.host.unload('clock')
    await writePlugin(folder, pluginText('clock', { members: 'uses: {},' }))
    expect(await host.app.host.load(folder).then(() => 'loaded', cause)).toContain('a plugin of this name is built in')
    await host.app.host.reload('clock')
  })

  it('without uses, one that the operator wrote is not restricted', async () => {
    for (const [action] of actions.slice(0, 4)) {
      expect(await attempt(action, '')).toBe('loaded')
      await host.app.host.unload(`guarded-${count}`)
    }
  })
})

describe('the tables of a plugin that declares what it uses', () => {
  const prefix = () => `guarded_${count + 1}_`
  const withTable = (sql: string, table = prefix()) =>
    attempt(
      `await ctx.db.all([${JSON.stringify(sql.replaceAll('OWN', `${table}it`))}])`,
      `uses: { tables: true }, migrations: [{ id: '1', sql: 'CREATE TABLE ${table}it (id TEXT, note TEXT)' }],`,
    )

  it.each([
    'SELECT * FROM OWN',
    `SELECT note FROM OWN WHERE note = 'drop table'`,
    'WITH RECURSIVE n(x) AS (SELECT 1 UNION SELECT x + 1 FROM n WHERE x < 3) SELECT x FROM n, OWN',
    `INSERT INTO OWN (id) VALUES ('a') RETURNING id`,
  ])('can be used: %s', async (sql) => {
    expect(await withTable(sql)).toBe('loaded')
  })

  it.each([
    ['SELECT * FROM core_migration', '"core_migration" does not belong to it'],
    ['SELECT * FROM Other_Pair', '"other_pair" does not belong to it'],
    ['SELECT * FROM "other_pair"', '"other_pair" does not belong to it'],
    ['SELECT * FROM [other_pair]', '"other_pair" does not belong to it'],
    [`SELECT * FROM 'other_pair'`, '"other_pair" does not belong to it'],
    ['SELECT * FROM main.`other_pair`', '"other_pair" does not belong to it'],
    [`SELECT '--', * FROM other_pair`, '"other_pair" does not belong to it'],
    ['SELECT /* */ * FROM/**/other_pair', '"other_pair" does not belong to it'],
    ['SELECT * FROM OWN, other_pair', '"other_pair" does not belong to it'],
    ['SELECT * FROM sqlite_master', '"sqlite_master" does not belong to it'],
    [`SELECT * FROM pragma_table_info('x')`, '"pragma_table_info" does not belong to it'],
    [`SELECT query_to_xml('x', true, true, '')`, '"query_to_xml" does not belong to it'],
    [`ATTACH '/tmp/x.db' AS x`, '"attach" is no statement on rows'],
    ['PRAGMA writable_schema = 1', '"pragma" is no statement on rows'],
    ['DROP TABLE OWN', '"drop" is no statement on rows'],
  ])('are all it can use: %s', async (sql, problem) => {
    expect(await withTable(sql)).toContain(`uses its own tables only: ${problem}`)
  })

  it('are all that a part of a statement can use', async () => {
    const setup = `const { sqlPart } = await import('svc/sdk')
      await ctx.db.all\`SELECT \${sqlPart\`id FROM other_pair\`}\``
    expect(await attempt(setup, 'uses: { tables: true },')).toContain('"other_pair" does not belong to it')
  })

  it.each([
    ['CREATE TABLE other_it (id TEXT)', '"other_it" must begin with'],
    ['CREATE TABLE OWN AS SELECT * FROM other_pair', '"other_pair" does not belong to it'],
    ['CREATE VIEW OWN AS SELECT 1', 'and no view'],
    ['CREATE TRIGGER OWN AFTER INSERT ON OWN BEGIN DELETE FROM later_it; END', 'and no trigger'],
    ['CREATE TABLE OWN (id TEXT); ALTER TABLE OWN RENAME TO kv_new', '"kv_new" must begin with'],
    [`CREATE VIRTUAL TABLE OWN USING fts5(a, content='later_it')`, 'must use fts5 with content of its own'],
    ['DROP TABLE other_pair', '"other_pair" must begin with'],
    [`ATTACH '/tmp/x.db' AS x`, '"attach" is no statement of a migration'],
  ])('are all that its migrations change: %s', async (sql, problem) => {
    const text = sql.replaceAll('OWN', `${prefix()}it`)
    const members = `migrations: [{ id: '1', sql: ${JSON.stringify(text)} }],`
    expect(await attempt('', 'uses: { tables: true },', members)).toContain(problem)
  })
})

describe('an installed plugin', () => {
  it('loads only with what was accepted, and the code before goes on if new code uses more', async () => {
    const accepted = new AcceptedPermissionsFile(host.home)
    const folder = join(host.home, 'guarded', 'installed')
    const write = (uses: string) =>
      writePlugin(folder, pluginText('installed', { members: uses, setup: `${routeText('/api/it', 'x')}; return {}` }))
    const load = () => host.app.host.load(folder).then(() => 'loaded', cause)

    await accepted.accept(folder, ['route:/api/*'])
    await write('')
    expect(await load()).toContain('may not use "route:/api/it"')
    await write(`uses: { routes: ['/api/it'], jobs: true },`)
    expect(await load()).toContain('it uses more than was accepted: jobs; install it again to accept that')
    await write(`uses: { routes: ['/api/it'] },`)
    expect(await load()).toBe('loaded')
    await write(`uses: { routes: ['/api/it'], programs: ['git'] },`)
    expect(await host.app.host.reload('installed').catch(cause)).toContain(
      'not reloaded, the code before goes on: it uses more than was accepted: program:git',
    )
    expect((await host.json('GET', '/api/it')).body).toEqual({ text: 'x' })
    await accepted.accept(folder, ['route:/api/*', 'program:git'])
    await host.app.host.reload('installed')
  })
})
