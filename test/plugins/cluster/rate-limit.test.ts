import { expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'

it.each([
  [true, 40],
  [false, 80],
])('a rate limit of 40 that is shared (%s) lets two daemons answer %i requests', async (shared, allowed) => {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const start = async (): Promise<TestHost> => {
    const host = await startHost({
      plugins: ['audit', 'cluster', 'system'],
      config: { database_url: database.url, rate_limit: { tokens_per_minute: 40, shared } },
    })
    onTestFinished(() => host[Symbol.asyncDispose]())
    return host
  }
  const [one, two] = [await start(), await start()]
  await eventually(() => {
    for (const { app } of [one, two]) expect(app.daemon.metrics()).toContain('svc_cluster_members{state="active"} 2')
  })
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async (_, at) => (await (at % 2 ? one : two).fetch('/api/health')).status),
  )
  const answered = statuses.filter((status) => status === 200).length
  expect(statuses.filter((status) => status === 429)).toHaveLength(100 - answered)
  // What a minute gives back while the requests are under way comes on top.
  expect(answered).toBeGreaterThanOrEqual(allowed)
  expect(answered).toBeLessThan(allowed + 10)
})
