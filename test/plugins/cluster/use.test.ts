import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createDaemonClient } from '../../../core/net/daemon-client.ts'
import check from '../../../plugins/cluster/cli/check.ts'
import { runHere } from '../../core/cli/here.ts'
import { SHARED_VAULT_KEY, startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { launchBrowser, openTab } from '../webchat/browser.ts'

async function start(url: string, name: string, more: readonly string[] = []): Promise<TestHost> {
  const config = { database_url: url, plugins: { cluster: { name } } }
  const host = await startHost({ plugins: ['audit', 'cluster', 'system', ...more], config })
  onTestFinished(() => host[Symbol.asyncDispose]())
  await host.app.greeted()
  return host
}
async function database(): Promise<string> {
  const made = await createTestDatabase()
  onTestFinished(() => made[Symbol.asyncDispose]())
  return made.url
}

it('svc cluster lists the daemons, drains one at another, and svc doctor compares them', async () => {
  const url = await database()
  const [first, second] = [await start(url, 'first'), await start(url, 'second')]
  const svc = (...args: string[]) => runHere(['cluster', ...args, '--home', first.home])
  const { stdout } = await svc('status')
  expect(stdout).toMatch(/first \(this one\) +[0-9a-f]{8} +active/)
  expect(stdout).toMatch(/second +[0-9a-f]{8} +active/)
  expect((await svc('drain', 'second')).stdout).toContain('second takes nothing more over.')
  expect((await svc('status')).stdout).toMatch(/second +[0-9a-f]{8} +draining/)
  expect((await svc('undrain', 'second')).stdout).toContain('second takes work again.')
  const unknown = await svc('drain', 'third')
  expect(unknown.stderr).toContain('no daemon is called "third"')
  expect(await check({ config: first.announced, env: {}, daemon: createDaemonClient({ url: first.url }) })).toEqual({
    state: 'ok',
    found: '2 daemons, configured alike',
  })
  const stopping = svc('drain', 'second', '--stop')
  expect(await second.app.closed).toMatchObject({ kind: 'shutdown' })
  await second.stop()
  expect(await stopping).toMatchObject({ code: 0, stdout: 'second has stopped.\n' })
  // This one was asked to, and is kept by the test.
  const kept = await svc('drain', '--stop', '--timeout', '0.5')
  expect([kept.code, kept.stderr]).toEqual([1, expect.stringContaining('first was asked to stop and still runs after')])
})

it('svc doctor and svc status name the tables with rows that cannot be read, and how many', async () => {
  const made = await createTestDatabase()
  onTestFinished(() => made[Symbol.asyncDispose]())
  const host = await start(made.url, 'only', ['usage', 'agents'])
  await made.query("INSERT INTO cluster_config (member, sections, keys) VALUES ('one', '{', '{'), ('two', '1', '{')")
  await host.json('GET', '/api/cluster')
  const svc = (command: string) => runHere([command, '--home', host.home], { SVC_DATABASE_URL: made.url })
  expect((await svc('doctor')).stdout).toMatch(
    /warn {2}rows +rows that cannot be read in cluster_config: 2 since the start.*\n {6}-> correct or delete them/,
  )
  expect((await svc('status')).stdout).toMatch(/warning +rows that cannot be read in cluster_config: 2/)
})

it('a daemon without a plugin that another has loaded is named, and is sent no requests', async () => {
  const url = await database()
  const whole = await start(url, 'whole', ['usage', 'agents', 'kv'])
  const lacking = await start(url, 'lacking', ['kv'])
  expect(lacking.app.daemon.plugins().find(({ name }) => name === 'kv')?.state).toBe('failed')
  expect((await lacking.json('GET', '/api/ready')).status).toBe(503)
  expect((await lacking.json('GET', '/api/health')).body.status).toBe('degraded')
  expect((await lacking.json('GET', '/api/health/detail')).body.config_warnings).toContainEqual(
    expect.stringContaining('plugins: kv: loaded in other daemons on the database and not here'),
  )
  const seen = async (host: TestHost, name: string): Promise<readonly string[]> =>
    (await host.json('GET', '/api/cluster')).body.members.find((member: { name: string }) => member.name === name)
      .differences
  expect(await seen(whole, 'lacking')).toContain('plugin kv')
  const { stdout } = await runHere(['cluster', 'status', '--home', whole.home])
  expect(stdout).toMatch(/lacking +[0-9a-f]{8} +impaired/)
  expect(stdout).toContain('lacking: its plugins failed, it takes nothing over: kv')
  expect((await whole.json('GET', '/api/ready')).status).toBe(200)
  // With nobody who has it, requests have nowhere better to go.
  const other = await database()
  expect((await (await start(other, 'alone', ['kv'])).json('GET', '/api/ready')).status).toBe(200)
  expect((await (await start(other, 'alike', ['kv'])).json('GET', '/api/ready')).status).toBe(200)
})

it('svc cluster join refuses another queue, and names disabled plugins and budgets that differ', async () => {
  const url = await database()
  const first = await startHost({
    plugins: ['audit', 'cluster', 'system', 'queue', 'usage', 'budgets'],
    config: { database_url: url, budget: { max_daily_usd: 5 }, plugins: { cluster: { name: 'first' } } },
  })
  onTestFinished(() => first[Symbol.asyncDispose]())
  await first.app.greeted()
  await using folder = await temporaryFolder()
  const home = join(folder.path, 'home')
  await mkdir(home)
  const configure = (text: string) => writeFile(join(home, 'config.toml'), text)
  const join_ = () => runHere(['cluster', 'join', url, '--home', home], { SVC_VAULT_KEY: SHARED_VAULT_KEY })
  await configure('[plugins.queue]\ndriver = "embedded"\n')
  const refused = await join_()
  expect([refused.code, refused.stderr]).toEqual([
    5,
    expect.stringContaining('plugins.queue.driver is "embedded" in this home and "pg-boss" in first'),
  ])
  await configure('[budget]\nmax_daily_usd = 6\n[plugins]\ndisabled = ["queue"]\n')
  const joined = await join_()
  expect([joined.code, joined.stdout]).toEqual([
    0,
    expect.stringContaining('Not as in the others: plugin "queue" is disabled in this home, and not in first.'),
  ])
  expect(joined.stdout).toContain('budget.max_daily_usd is another one in first')
  expect(joined.stdout.match(/Not as in the others/g)).toHaveLength(2)
})

it('svc cluster join writes what a second daemon needs, once it is right', async () => {
  const made = await createTestDatabase()
  onTestFinished(() => made[Symbol.asyncDispose]())
  const { url, name } = made
  await start(url, 'first')
  await using folder = await temporaryFolder()
  const home = join(folder.path, 'home')
  const key = join(folder.path, 'key')
  const join_ = (env: Record<string, string>, ...args: string[]) =>
    runHere(['cluster', 'join', url, '--home', home, ...args], env)

  const wrong = await join_({ SVC_VAULT_KEY: 'cd'.repeat(32) })
  expect([wrong.code, wrong.stderr]).toEqual([6, expect.stringContaining('encrypted with another key')])
  expect((await readdir(home)).filter((name) => name === 'config.toml')).toEqual([])
  const lost = await runHere(['cluster', 'join', 'postgres://127.0.0.1:1/svc', '--home', home], {
    SVC_VAULT_KEY: SHARED_VAULT_KEY,
  })
  expect(lost.stderr).toContain('postgres://127.0.0.1:1/svc cannot be used')
  const keyless = await join_({}, '--vault-key-file', join(folder.path, 'none'))
  expect(keyless.stderr).toContain(
    `vault_key_file: ${join(folder.path, 'none')} cannot be read (ENOENT): there is no such file. Mount`,
  )
  expect(keyless.stderr).not.toContain('database_url')

  const role = `reader_${name}`
  await made.query(`CREATE ROLE ${role} LOGIN`)
  const refused = await runHere(['cluster', 'join', url.replace('user=svc', `user=${role}`), '--home', home], {
    SVC_VAULT_KEY: SHARED_VAULT_KEY,
  })
  await made.query(`DROP ROLE ${role}`)
  expect(refused.stderr).toMatch(/may not make tables|must be owner|permission denied/)
  expect(refused.stderr).toMatch(/GRANT CREATE ON SCHEMA|grant the role/)

  await writeFile(key, SHARED_VAULT_KEY, { mode: 0o600 })
  await mkdir(join(home, 'data'))
  for (const data of [join(home, 'data', 'svc.db'), join(home, 'audit.anchor')]) {
    await writeFile(data, 'of another installation')
    const used = await join_({}, '--vault-key-file', key)
    expect([used.code, used.stderr]).toEqual([5, expect.stringContaining(`has data of its own: ${data}`)])
    expect(used.stderr).toMatch(/nothing was written[\s\S]*--home[\s\S]*database copy/)
    expect(await readdir(home)).not.toContain('config.toml')
    await rm(data)
  }
  const joined = await join_({}, '--vault-key-file', key)
  expect(joined).toMatchObject({ code: 0, stdout: expect.stringContaining('the key opens its vault') })
  expect(joined.stdout + joined.stderr).not.toContain(SHARED_VAULT_KEY)
  const file = await readFile(join(home, 'config.toml'), 'utf8')
  expect(file).toContain(`database_url = "${url}"`)
  expect(file).toContain(`vault_key_file = "${key}"`)
  const second = await startHost({ home, plugins: ['audit', 'cluster'] })
  onTestFinished(() => second[Symbol.asyncDispose]())
  expect((await second.json('GET', '/api/cluster')).body.members).toHaveLength(2)
})

it('the page shows the daemons and drains one', async () => {
  const url = await database()
  const host = await start(url, 'first', ['webchat', 'providers/builtin'])
  await start(url, '<b>second</b>')
  const browser = await launchBrowser()
  onTestFinished(() => browser.close())
  await using tab = await openTab(browser, host.url, { path: '/pages/cluster/cluster/cluster.html' })
  const { page } = tab
  await page.getByText('2 daemons are on this database.').waitFor()
  const card = page.getByRole('region', { name: '<b>second</b>' })
  await card.getByText('active').waitFor()
  await card.getByRole('button', { name: 'Drain: <b>second</b>' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
  await card.getByText('draining').waitFor()
  await card.getByRole('button', { name: 'Take work again: <b>second</b>' }).click()
  await card.getByText('active').waitFor()
  expect(tab.complaints).toEqual([])
})
