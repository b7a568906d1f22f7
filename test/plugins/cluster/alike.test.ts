import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { explainStart } from '../../../core/cli/start-failure.ts'
import type { ConfigInput } from '../../../core/config/schema.ts'
import { createDaemonClient } from '../../../core/net/daemon-client.ts'
import check from '../../../plugins/cluster/cli/check.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'

async function database(): Promise<TestDatabase> {
  const made = await createTestDatabase()
  onTestFinished(() => made[Symbol.asyncDispose]())
  return made
}
async function start(
  { url }: TestDatabase,
  plugins: readonly string[],
  sections: NonNullable<ConfigInput['plugins']>,
  home?: string,
): Promise<TestHost> {
  const host = await startHost({
    plugins: ['audit', 'cluster', 'system', ...plugins],
    config: { database_url: url, plugins: sections },
    ...(home !== undefined && { home }),
  })
  onTestFinished(() => host[Symbol.asyncDispose]())
  await host.app.greeted()
  return host
}

it('a daemon with another driver of the queue than those on the database does not start', async () => {
  const shared = await database()
  const queue = (name: string, driver: string): Promise<TestHost> =>
    start(shared, ['queue'], { cluster: { name }, queue: { driver } })
  const first = await queue('first', 'embedded')
  const refused = await queue('second', 'auto').catch((error: unknown) => error)
  expect(explainStart(refused, first.announced)).toMatchObject({
    exit: 6,
    message: expect.stringMatching(
      /^plugins\.queue\.driver is "pg-boss" here and "embedded" in first, .* slots of sched/,
    ),
    advice: expect.stringContaining('stop all of them first'),
  })
  // It has left, and changed nothing for those that are there.
  expect(await shared.query('SELECT name FROM cluster_member')).toBe('first')
  await (await queue('third', 'embedded')).stop()
  await first.stop()
  const alone = await queue('second', 'auto')
  expect(alone.app.daemon.plugins().find(({ name }) => name === 'queue')?.state).toBe('loaded')
})

it('of daemons with two drivers that start at once one starts', async () => {
  const shared = await database()
  // The tables are there, so that both come to the same point.
  await (await start(shared, ['queue'], {})).stop()
  const started = await Promise.allSettled(
    ['embedded', 'pg-boss'].map((driver) => start(shared, ['queue'], { queue: { driver } })),
  )
  expect(started.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

it('a daemon whose files lie elsewhere than those of the others does not start', async () => {
  const shared = await database()
  const agents = ['usage', 'agents', 'files']
  await start(shared, agents, { cluster: { name: 'first' } })
  await expect(start(shared, agents, { files: { mount: 'database' } })).rejects.toThrow(
    'plugins.files.mount is "database or s3" here and "folder" in first, on the same database: files that an agent writes',
  )
  expect(await shared.query('SELECT count(*) FROM files_stored')).toBe('0')
})

it('a daemon with the host name and home of one that is alive does not start; an earlier run of its own is none', async () => {
  const shared = await database()
  const { query } = shared
  await using folder = await temporaryFolder()
  const home = folder.path
  const first = await start(shared, [], {}, home)
  await query('CREATE TABLE kept AS SELECT * FROM cluster_member')
  await first.stop()
  /** Starts it while a row of the same home is counted up; how that ends. */
  const startBeside = async (id: string): Promise<string> => {
    await query(`INSERT INTO cluster_member SELECT * FROM kept; UPDATE cluster_member SET id = '${id}', name = 'web-1'`)
    let ended: string | undefined
    void start(shared, [], {}, home).then(
      (host) => (ended = host.app.daemon.startedAt),
      (error: Error) => (ended = error.message),
    )
    return eventually(async () => {
      await query('UPDATE cluster_member SET beats = beats + 1')
      return ended ?? Promise.reject(new Error('it starts'))
    })
  }
  expect(await startBeside('of another home')).toMatch(
    /^daemon "web-1" at 127\.0\.0\.1:\d+ is on the same database and has the same host name/,
  )
  expect(await query('DELETE FROM cluster_member RETURNING name')).toBe('web-1')
  // The home has the id of its last run, which was killed.
  expect(await startBeside(await readFile(join(home, 'cluster-member'), 'utf8'))).toMatch(/^\d{4}-/)
  expect(await query(`SELECT count(*) FROM cluster_member WHERE name = 'web-1'`)).toBe('0')
})

it('svc doctor and the warnings name daemons with one name', async () => {
  const shared = await database()
  await start(shared, [], { cluster: { name: 'web' } })
  const host = await start(shared, [], { cluster: { name: 'web' } })
  expect(await check({ config: host.announced, env: {}, daemon: createDaemonClient({ url: host.url }) })).toEqual({
    state: 'warn',
    found: '2 daemons are called "web"',
    advice: 'give each daemon a name of its own: plugins.cluster.name',
  })
  expect(host.app.daemon.warnings().join('\n')).toContain('another daemon on the database is called "web" too')
})
