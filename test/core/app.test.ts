import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lockHome } from '../../core/storage/lock.ts'
import { startHost } from '../support/host.ts'
import { pluginText, routeText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

async function temporaryHome(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'svc-home-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
/** The member of a plugin "one" with so many migrations, each of which makes a table. */
function migrationsText(count: number): string {
  const each = (at: number): string => `{ id: '${at}', sql: 'CREATE TABLE one_t${at} (x INTEGER)' }`
  return `migrations: [${Array.from({ length: count }, (_, at) => each(at)).join(', ')}],`
}
const controlling = pluginText('control', {
  before: `import { Daemon } from 'svc/internal'`,
  members: 'requires: { daemon: Daemon },',
  setup: `const post = { method: 'POST', summary: 'x', auth: 'public', effect: 'conversation', cost: 1 }
    const returns = v.object({ stopping: v.string() })
    for (const kind of ['shutdown', 'restart']) ctx.routes.add(defineRoute({ ...post, path: '/api/' + kind, returns,
      handle() { ctx.services.daemon[kind]('asked by a test'); return { stopping: ctx.services.daemon.stopping } } }))
    return {}`,
})

describe('the daemon', () => {
  it('starts with every built-in plugin loaded', async () => {
    await using host = await startHost()
    expect(
      host.app.daemon
        .plugins()
        .filter(({ state }) => state !== 'loaded')
        .map(({ name, error }) => `${name}: ${error}`),
    ).toEqual([])
    expect((await host.json('GET', '/api/health')).body).toMatchObject({ status: 'ok' })
  })

  it('says where it listens and writes it down for the command line', async () => {
    await using host = await startHost({ plugins: [] })
    expect(host.app.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+/)
    expect(await readdir(host.home)).toEqual(expect.arrayContaining(['daemon.json', 'daemon.lock']))
  })

  it('refuses a home that another daemon uses, and leaves that one alone', async () => {
    await using host = await startHost({ plugins: [] })
    await expect(startHost({ plugins: [], home: host.home })).rejects.toThrow(
      new RegExp(`another svc \\(process ${process.pid}`),
    )
    expect((await host.fetch('/api/nothing')).status).toBe(404)
  })

  it('gives everything back when it is closed: the home can be used again', async () => {
    await using home = await temporaryHome()
    const first = await startHost({ plugins: [], home: home.path })
    await first[Symbol.asyncDispose]()
    await using second = await startHost({ plugins: [], home: home.path })
    expect(second.app.url).toBeDefined()
  })

  it('gives everything back when it cannot start', async () => {
    await using home = await temporaryHome()
    await expect(startHost({ plugins: [], home: home.path, config: { database_url: 'mysql://x' } })).rejects.toThrow(
      'database_url',
    )
    const lock = await lockHome(home.path)
    lock[Symbol.dispose]()
  })

  it('answers a running request before it closes', async () => {
    await using folder = await temporaryFolder()
    const gate = Promise.withResolvers<void>()
    const entered = Promise.withResolvers<void>()
    Object.assign(globalThis, { closeGate: { entered: () => entered.resolve(), open: gate.promise } })
    const before = `const { closeGate } = globalThis as any; closeGate.entered(); await closeGate.open`
    const slow = pluginText('slow', { setup: `${routeText('/api/slow', 'done', before)}; return {}` })
    const host = await startHost({ plugins: [await writePlugin(join(folder.path, 'slow'), slow)], memory: true })
    const answer = host.json('GET', '/api/slow')
    await entered.promise
    const closed = host[Symbol.asyncDispose]()
    gate.resolve()
    expect((await answer).body).toEqual({ text: 'done' })
    await closed
  })

  it.each(['shutdown', 'restart'] as const)(
    'asks whoever made it for a %s once the request is answered',
    async (kind) => {
      await using folder = await temporaryFolder()
      await using host = await startHost({
        plugins: [await writePlugin(join(folder.path, 'control'), controlling)],
        memory: true,
      })
      expect(await host.json('POST', `/api/${kind}`)).toMatchObject({
        status: 200,
        body: { stopping: 'asked by a test' },
      })
      expect(await host.app.closed).toEqual({ kind, reason: 'asked by a test' })
    },
  )

  it('counts restarts for the life of its home, and defects for its own', async () => {
    await using home = await temporaryHome()
    await using folder = await temporaryFolder()
    const failing = pluginText('failing', {
      setup: `${routeText('/api/failing', 'x', `throw new Error('planned')`)}; return {}`,
    })
    const plugins = [
      await writePlugin(join(folder.path, 'control'), controlling),
      await writePlugin(join(folder.path, 'failing'), failing),
    ]
    const first = await startHost({ plugins, home: home.path })
    expect((await first.fetch('/api/failing')).status).toBe(500)
    expect(first.app.daemon.health()).toMatchObject({ panicCount: 1, restartCount: 0 })
    expect(first.defects()).toMatchObject([{ error: { message: 'planned' } }])
    first.app.daemon.restart('again')
    await first.app.closed
    await first[Symbol.asyncDispose]()
    await using second = await startHost({ plugins, home: home.path })
    expect(second.app.daemon.health()).toMatchObject({
      panicCount: 0,
      restartCount: 1,
      status: 'ok',
      database: 'connected',
    })
  })

  it('copies the database before it changes the tables of a home that is in use', async () => {
    await using home = await temporaryHome()
    await using folder = await temporaryFolder()
    const withTables = (count: number) => pluginText('one', { members: migrationsText(count) })
    const plugin = await writePlugin(join(folder.path, 'one'), withTables(1))
    const snapshots = () => readdir(join(home.path, 'data', 'snapshots')).catch(() => [])
    for (let start = 0; start < 2; start++) {
      const host = await startHost({ plugins: [], home: home.path, config: { plugins: { paths: [plugin] } } })
      await host[Symbol.asyncDispose]()
    }
    expect(await snapshots()).toEqual([])
    await writePlugin(plugin, withTables(2))
    const host = await startHost({ plugins: [], home: home.path, config: { plugins: { paths: [plugin] } } })
    expect(host.app.daemon.plugins()).toMatchObject([{ name: 'one', state: 'loaded' }])
    await host[Symbol.asyncDispose]()
    expect(await snapshots()).toEqual([expect.stringMatching(/^before-migration-.*\.db$/)])
  })

  it('copies the sidecar files of plugins with the database, and refuses a start when it is lost', async () => {
    await using home = await temporaryHome()
    await using folder = await temporaryFolder()
    const withTables = (count: number) =>
      pluginText('one', { members: `databaseSidecars: ['one.proof'], ${migrationsText(count)}` })
    // Built-in plugins are imported once for each path.
    const restart = async (tables: number) => {
      const plugin = await writePlugin(join(folder.path, String(tables), 'one'), withTables(tables))
      const host = await startHost({ plugins: [plugin], home: home.path })
      expect(host.app.daemon.plugins()).toMatchObject([{ name: 'one', state: 'loaded' }])
      await host[Symbol.asyncDispose]()
    }
    await restart(1)
    await writeFile(join(home.path, 'one.proof'), 'proof')
    await restart(2)
    const copies = (await readdir(join(home.path, 'data', 'snapshots'))).sort()
    expect(copies).toEqual([
      expect.stringMatching(/^before-migration-.*\.db$/),
      expect.stringMatching(/^before-migration-.*\.one\.proof$/),
    ])
    expect(await readFile(join(home.path, 'data', 'snapshots', copies[1] ?? ''), 'utf8')).toBe('proof')
    await rm(join(home.path, 'data'), { recursive: true })
    await expect(restart(2)).rejects.toThrow(/svc\.db is missing, although .*one\.proof shows that it existed/)
  })

  it('refuses a sidecar file that is not named after its plugin', async () => {
    await using folder = await temporaryFolder()
    const text = pluginText('one', { members: "databaseSidecars: ['vault.key']," })
    await using host = await startHost({ plugins: [await writePlugin(join(folder.path, 'one'), text)], memory: true })
    expect(host.app.daemon.warnings().join('\n')).toMatch(/databaseSidecars: "vault\.key" must begin with "one\."/)
  })

  it('shows what is wrong with its plugins in its health', async () => {
    await using folder = await temporaryFolder()
    await using host = await startHost({
      plugins: [await writePlugin(join(folder.path, 'broken'), 'export const x = 1')],
      memory: true,
    })
    expect(host.app.daemon.warnings().join('\n')).toMatch(/plugin "broken" is not loaded: .*has no default export/)
  })
})

it('a daemon starts without the plugin whose applied migration was edited, and says which and what to do', async () => {
  await using folder = await temporaryFolder()
  await using home = await temporaryHome()
  const plugin = join(folder.path, 'edited')
  const write = (column: string): Promise<string> =>
    writePlugin(
      plugin,
      pluginText('edited', { members: `migrations: [{ id: 'a', sql: 'CREATE TABLE edited_t (x ${column})' }],` }),
    )
  const start = () =>
    startHost({ plugins: ['system', 'audit'], home: home.path, config: { plugins: { paths: [plugin] } } })
  await write('INTEGER')
  {
    await using before = await start()
    expect(before.app.daemon.plugins().find(({ name }) => name === 'edited')?.state).toBe('loaded')
  }
  await write('TEXT')
  await using host = await start()
  expect(host.app.daemon.plugins().find(({ name }) => name === 'edited')).toMatchObject({
    state: 'failed',
    error: expect.stringContaining('Restore its original text'),
  })
  expect((await host.fetch('/api/health')).status).toBe(200)
})
