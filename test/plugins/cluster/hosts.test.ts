import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { ConfigInput } from '../../../core/config/schema.ts'
import { ManualTimer } from '../../../core/jobs/manual-timer.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'

interface Started {
  readonly host: TestHost
  readonly timer: ManualTimer
}
async function start(
  url: string,
  cluster: object = {},
  config: ConfigInput = {},
  more: readonly string[] = [],
): Promise<Started> {
  const timer = new ManualTimer(Date.parse('2026-01-01T00:00:00Z'))
  const host = await startHost({
    plugins: ['audit', 'cluster', 'system', ...more],
    config: { ...config, database_url: url, plugins: { cluster } },
    jobTimer: () => timer,
  })
  onTestFinished(() => host[Symbol.asyncDispose]())
  await host.app.greeted()
  return { host, timer }
}
async function database(): Promise<TestDatabase> {
  const made = await createTestDatabase()
  onTestFinished(() => made[Symbol.asyncDispose]())
  return made
}
const audited = async ({ host }: Started): Promise<readonly string[]> =>
  (await host.json('GET', '/api/audit/recent?limit=100')).body.entries
    .map((entry: { details: string }) => entry.details)
    .filter((details: string) => details.startsWith('daemon "'))
const metric = async ({ host }: Started, name: string): Promise<readonly string[]> =>
  (await (await host.fetch('/api/metrics')).text()).split('\n').filter((line) => line.startsWith(name))

it('two daemons on a database know of each other and of the end of one', async () => {
  const { url, query } = await database()
  const one = await start(url, { name: 'first' })
  const other = await start(url, { name: 'second', address: '10.0.0.5:4200' })
  expect(await query('SELECT name, address, state FROM cluster_member ORDER BY name')).toBe(
    `first|${new URL(one.host.url).host}|active\nsecond|10.0.0.5:4200|active`,
  )
  await one.timer.advance(5_000)
  expect(await metric(one, 'svc_cluster_members')).toEqual([
    'svc_cluster_members{state="active"} 2',
    'svc_cluster_members{state="draining"} 0',
    'svc_cluster_members{state="impaired"} 0',
    'svc_cluster_members{state="unknown"} 0',
  ])
  await other.host.stop()
  expect(await query('SELECT name FROM cluster_member')).toBe('first')
  expect((await audited(one)).map((details) => details.replace(/\(.*?\) /, ''))).toEqual([
    'daemon "first" joined',
    'daemon "second" joined',
    'daemon "second" left',
  ])
})

it('a daemon that was declared dead restarts', async () => {
  const { url, query } = await database()
  const paused = await start(url)
  const other = await start(url)
  await other.timer.advance(25_000)
  expect(await query('SELECT count(*) FROM cluster_member')).toBe('1')
  await paused.timer.advance(5_000)
  expect(await paused.host.app.closed).toEqual({
    kind: 'restart',
    reason: 'the other daemons on the database have declared this one dead',
  })
  expect(await metric(other, 'svc_cluster_declared_dead')).toEqual(['svc_cluster_declared_dead 1'])
})

it('two daemons that cannot be told apart do not fight for ever', async () => {
  const { url, query } = await database()
  const one = await start(url)
  await query(`UPDATE cluster_member SET id = 'twin'`)
  await one.timer.advance(5_000)
  expect(await one.host.app.closed).toMatchObject({ kind: 'shutdown' })
  expect(one.host.log.join('\n')).toContain('give one of them another host name')
})

it('a daemon on SQLite is alone, and nothing is written or timed for it', async () => {
  const host = await startHost({ plugins: ['audit', 'cluster'], memory: true })
  onTestFinished(() => host[Symbol.asyncDispose]())
  const ledger = host.app.daemon.plugins().find(({ name }) => name === 'cluster')?.ledger ?? []
  expect(ledger.filter(({ kind }) => kind === 'job')).toEqual([])
})

it('the members, how they differ, and whether one is ready', async () => {
  const { url } = await database()
  const one = await start(url, { name: 'first' }, { rate_limit: { failed_auth_per_minute: 77 }, api_key: 'one' })
  const other = await start(url, { name: 'second' }, { api_key: 'other' })
  const key = { authorization: 'Bearer one' }
  await one.timer.advance(5_000)
  const { members } = (await one.host.json('GET', '/api/cluster', undefined, key)).body
  expect(members).toMatchObject([
    { name: 'first', self: true, state: 'active', lease_secs: 15, seen_secs: 0, differences: [] },
    { name: 'second', self: false, state: 'active', differences: ['api_key', 'rate_limit.failed_auth_per_minute'] },
  ])
  expect(one.host.app.daemon.warnings().join('\n')).toContain(
    'cluster: daemon "second" differs from this one in api_key, rate_limit.failed_auth_per_minute',
  )
  expect(JSON.stringify(members)).not.toContain('other"')

  const [, second] = members
  expect((await one.host.json('POST', `/api/cluster/members/${second.id}/drain`, {}, key)).body).toEqual({
    id: second.id,
    state: 'draining',
  })
  await eventually(async () => expect((await other.host.json('GET', '/api/ready')).status).toBe(503))
  expect((await one.host.json('GET', '/api/ready')).body).toEqual({ status: 'ready' })
  await one.host.json('POST', `/api/cluster/members/${second.id}/undrain`, undefined, key)
  await eventually(async () => expect((await other.host.json('GET', '/api/ready')).status).toBe(200))
  await one.host.json('POST', `/api/cluster/members/${second.id}/drain`, { stop: true }, key)
  expect(await other.host.app.closed).toMatchObject({ kind: 'shutdown', reason: 'it was drained to be stopped' })
})

it('a key that was changed in a file is compared with the next beat; a notice that is cut short is named', async () => {
  const { url } = await database()
  const one = await start(url)
  const other = await start(url, { notice_secs: 60 }, {}, ['settings'])
  await writeFile(join(other.host.home, 'config.toml'), '[http]\nmax_body_bytes = 1000000\n')
  expect((await other.host.json('POST', '/api/config/reload')).status).toBe(200)
  await other.timer.advance(5_000)
  const { members } = (await one.host.json('GET', '/api/cluster')).body
  expect(members[1].differences).toEqual(['http.max_body_bytes', 'plugins.cluster.notice_secs'])
  expect(other.host.app.daemon.warnings().join('\n')).toContain('plugins.cluster.notice_secs (60) counts within')
})

it('rows of members that another build wrote stop nothing, and are named once', async () => {
  const { url, query } = await database()
  await start(url, { name: 'first' })
  const one = await start(url, { name: 'second' })
  await query(`UPDATE cluster_member SET state = 'resting' WHERE name = 'first'`)
  await query(
    `UPDATE cluster_config SET sections = '{' WHERE member = (SELECT id FROM cluster_member WHERE name = 'first')`,
  )
  const late = await start(url, { name: 'third' })
  const answer = await one.host.json('GET', '/api/cluster')
  expect([answer.status, answer.body.members]).toMatchObject([200, [{ name: 'first', state: 'unknown' }, {}, {}]])
  await late.host.json('GET', '/api/cluster')
  const times = (text: string): number => late.host.log.filter((line) => line.includes(text)).length
  expect([times('is in a state that this version'), times('cluster_config with member')]).toEqual([1, 1])
  expect(late.host.app.daemon.warnings().join('\n')).toContain('daemon "first"')
})

it('a daemon that is to stop answers until a load balancer has noticed', async () => {
  const { url, query } = await database()
  const one = await start(url, { notice_secs: 300 })
  const { host } = await start(url)
  await one.timer.advance(5_000)
  one.host.app.daemon.shutdown('test')
  await eventually(async () => expect((await one.host.json('GET', '/api/ready')).status).toBe(503))
  expect((await one.host.json('GET', '/api/health')).status).toBe(200)
  await eventually(async () =>
    expect(await query('SELECT count(*) FROM cluster_member WHERE state = $$draining$$')).toBe('1'),
  )
  // At most `plugins.drain_ms`.
  await one.host.app.closed
  expect((await host.json('GET', '/api/ready')).status).toBe(200)
})

it('a daemon that could not join is not ready', async () => {
  const { url, query } = await database()
  await start(url)
  await query('ALTER TABLE cluster_member RENAME COLUMN beats TO beats_gone')
  const { host } = await start(url)
  const answer = await host.json('GET', '/api/ready')
  expect([answer.status, answer.body.error.message]).toEqual([503, 'This daemon has not joined those on its database'])
})

it('a daemon on SQLite is drained too', async () => {
  const host = await startHost({ plugins: ['audit', 'cluster', 'system'], memory: true })
  onTestFinished(() => host[Symbol.asyncDispose]())
  expect((await host.json('GET', '/api/cluster')).body).toMatchObject({ shared: false, members: [{ self: true }] })
  await host.json('POST', '/api/cluster/members/self/drain')
  expect((await host.json('GET', '/api/ready')).status).toBe(503)
  expect((await host.json('GET', '/api/cluster')).body.members[0].state).toBe('draining')
  const warnings = async () => (await host.json('GET', '/api/health/detail')).body.config_warnings
  expect(await warnings()).toContainEqual(expect.stringContaining('this daemon is drained'))
  await host.json('POST', '/api/cluster/members/self/undrain')
  expect(await warnings()).not.toContainEqual(expect.stringContaining('this daemon is drained'))
  expect((await host.json('GET', '/api/ready')).status).toBe(200)
  expect((await host.json('POST', '/api/cluster/members/nobody/drain')).status).toBe(404)
})
