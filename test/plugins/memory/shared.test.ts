import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { openTwoDaemons } from '../../support/two-daemons.ts'

const plugins = [
  'audit',
  'agents',
  'cluster',
  'queue',
  'usage',
  'providers',
  'providers/builtin',
  'memory',
  fileURLToPath(new URL('../../fixtures/tool-caller', import.meta.url)),
]

// The indexes are in the database; no message is needed.
it('what one daemon remembers and forgets, the other finds and does not find, after a lost message too', async () => {
  const stage = await openTwoDaemons(({ url }) => startHost({ plugins, config: { database_url: url } }))
  onTestFinished(() => stage[Symbol.asyncDispose]())
  const { one, two, database } = stage
  const { agent_id: agent } = (await one.json('POST', '/api/agents', { manifest_toml: 'name = "a"' })).body
  const call = async (host: TestHost, tool: string, args: unknown): Promise<string> =>
    (await host.json('POST', `/test/tools/${tool}`, { agent_id: agent, args })).body.text
  const search = (host: TestHost, query: string): Promise<string> => call(host, 'memory_search', { query })
  // The second daemon has searched before the first one writes.
  expect(await search(two, 'wallpaper')).toContain('Nothing is known')
  await call(one, 'memory_store', { key: 'taste', value: 'The wallpaper of the office is green' })
  await eventually(async () => expect(await search(two, 'wallpaper')).toContain('is green'))
  await call(one, 'memory_store', { key: 'taste', value: 'The wallpaper of the office is blue' })
  await eventually(async () => expect(await search(two, 'wallpaper')).toContain('is blue'))
  // Both engines make vectors, once for each content.
  await eventually(async () => expect(await database.query('SELECT count(*) FROM memory_vector')).toBe('1'))
  await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'`)
  const [{ id }] = JSON.parse(await search(one, 'wallpaper'))
  await call(one, 'memory_forget', { ids: [id] })
  await eventually(async () => expect(await search(two, 'wallpaper')).toContain('Nothing is known'))
  expect(await database.query('SELECT count(*) FROM memory_vector')).toBe('0')
})
