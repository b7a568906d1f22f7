import { expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'

it('connections, round trips and messages are counted on PostgreSQL, and nothing of the kind on SQLite', async () => {
  await using database = await createTestDatabase()
  await using one = await startHost({ plugins: [], listen: false, config: { database_url: database.url } })
  await using two = await startHost({ plugins: [], listen: false, config: { database_url: database.url } })
  await using alone = await startHost({ plugins: [], listen: false, memory: true })
  const value = (name: string): number =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(one.app.daemon.metrics())?.[1])
  expect(value('svc_broadcast_connected')).toBe(1)
  expect(value('svc_database_connections{state="idle"}'.replace(/[{}]/g, '\\$&'))).toBeGreaterThan(0)
  expect(value('svc_database_round_trips_total')).toBeGreaterThan(0)
  expect(value('svc_database_statements_total')).toBeGreaterThan(value('svc_database_round_trips_total'))
  expect(two.app.daemon.metrics()).toContain('svc_broadcast_messages_total{state="sent"} 0')
  expect(alone.app.daemon.metrics()).not.toMatch(/svc_(database|broadcast)_/)
})
