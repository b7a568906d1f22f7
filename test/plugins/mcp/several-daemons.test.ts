import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { openTwoDaemons } from '../../support/two-daemons.ts'
import type { TwoDaemons } from '../../support/two-daemons.ts'
import { turnPlugins } from '../plugin-test.ts'

const fixture = fileURLToPath(new URL('../../fixtures/mcp/confined.pl', import.meta.url))

/** Servers that are added, changed or removed over the API at one daemon run at the others: `mcp.servers` tells them. */
let stage: TwoDaemons
let database: TestDatabase
let one: TestHost
let two: TestHost
beforeAll(async () => {
  stage = await openTwoDaemons(start)
  ;({ database, one, two } = stage)
})
afterAll(() => stage[Symbol.asyncDispose]())

const start = ({ url }: TestDatabase): Promise<TestHost> =>
  startHost({
    plugins: [...turnPlugins, 'mcp', 'system'],
    config: { database_url: url, plugins: { mcp: { start_timeout_secs: 60 } } },
  })
const call = async (host: TestHost, method: string, path: string, body?: unknown) => {
  const answer = await host.json(method, `/api/mcp/servers${path}`, body)
  expect([method, path, answer.status, answer.body]).toEqual([
    method,
    path,
    answer.status < 300 ? answer.status : 200,
    answer.body,
  ])
  return answer.body
}
const stateAt = async (host: TestHost, name: string) => (await host.json('GET', `/api/mcp/servers/${name}`)).body
const spec = { name: 'worker', command: 'perl', args: ['server.pl'], lazy: false }
/** The script of its program, in the folder that it has in each home. */
async function place(): Promise<void> {
  for (const { home } of [one, two]) {
    await mkdir(join(home, 'mcp', 'worker'), { recursive: true })
    await copyFile(fixture, join(home, 'mcp', 'worker', 'server.pl'))
  }
}

it('a server that one adds, changes or removes is added, changed or removed at the other', async () => {
  await place()
  await call(one, 'POST', '', spec)
  await eventually(async () => expect(await stateAt(two, 'worker')).toMatchObject({ state: 'connected' }))
  expect((await two.json('POST', '/api/mcp/servers', spec)).status).toBe(409)
  await call(two, 'PUT', '/worker', { timeout_secs: 77 })
  await eventually(async () =>
    expect(await stateAt(one, 'worker')).toMatchObject({ state: 'connected', timeout_secs: 77 }),
  )
  await call(one, 'DELETE', '/worker')
  await eventually(async () => expect((await two.json('GET', '/api/mcp/servers/worker')).status).toBe(404))
})

it('one that another daemon is adding is left alone by a daemon that starts', async () => {
  const [owner] = (await database.query('SELECT id FROM cluster_member LIMIT 1')).split('\n')
  await database.query(`INSERT INTO mcp_server_attempt (name, new_folder, owner) VALUES ('begun', 0, '${owner}');
    INSERT INTO mcp_server_attempt (name, new_folder, owner) VALUES ('cut-off', 0, 'a-daemon-that-is-gone')`)
  await using _third = await start(database)
  await eventually(async () => expect(await database.query('SELECT name FROM mcp_server_attempt')).toBe('begun'))
})

it('what may not have been told is read again', async () => {
  await place()
  await call(one, 'POST', '', spec)
  await eventually(async () => expect(await stateAt(two, 'worker')).toMatchObject({ state: 'connected' }))
  await database.query('DELETE FROM mcp_server')
  await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE 'SELECT pg_notify(m.channel%')`)
  for (const host of [one, two])
    await eventually(async () => expect((await host.json('GET', '/api/mcp/servers/worker')).status).toBe(404))
})
