import { expect, it, onTestFinished } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'

it('two daemons do not put two goals below each other', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const start = async (): Promise<TestHost> => {
    const host = await startHost({
      plugins: ['audit', 'agents', 'goals'],
      config: { database_url: database.url },
    })
    onTestFinished(() => host[Symbol.asyncDispose]())
    return host
  }
  const [one, two] = [await start(), await start()]
  const add = async (title: string): Promise<string> => (await one.json('POST', '/api/goals', { title })).body.id
  const pairs = await Promise.all(
    Array.from({ length: 25 }, async (_, at) => [await add(`a${at}`), await add(`b${at}`)] as const),
  )
  for (const [a, b] of pairs) {
    const answers = await Promise.all([
      one.json('PUT', `/api/goals/${a}`, { parent_id: b }),
      two.json('PUT', `/api/goals/${b}`, { parent_id: a }),
    ])
    expect(answers.map(({ status }) => status === 200)).toContain(true)
  }
  const circles = `SELECT count(*) FROM goals_goal one JOIN goals_goal other ON one.parent_id = other.id
    WHERE other.parent_id = one.id`
  expect(await database.query(circles)).toBe('0')
})
