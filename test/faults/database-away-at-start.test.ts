import { expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import { createTestDatabase } from '../support/postgres-server.ts'
import { DatabaseLink } from './cluster/database-link.ts'

it('a plugin is loaded although the connection breaks while it is set up', async () => {
  await using database = await createTestDatabase()
  await using link = await DatabaseLink.open(database.host)
  const lost = link.loseAnswer('INSERT INTO cluster_member')
  await using host = await startHost({ config: { database_url: link.through(database.url) } })
  await lost
  const failed = host.app.daemon.plugins().filter(({ state }) => state !== 'loaded')
  expect(failed.map(({ name, error }) => `${name}: ${error}`)).toEqual([])
  expect(host.log.join('\n')).toContain('plugin "cluster" waits for the database')
  expect(await database.query('SELECT count(*) FROM cluster_member')).toBe('1')
})
