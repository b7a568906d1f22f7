import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { builtInFolders } from '../../../core/host/folders.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'

const toolCaller = fileURLToPath(new URL('../../fixtures/tool-caller', import.meta.url))

async function daemons(config: object = {}) {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const start = async (): Promise<TestHost> => {
    const host = await startHost({
      plugins: [...(await builtInFolders()), toolCaller],
      config: { database_url: database.url, plugins: { agents: config } },
    })
    onTestFinished(() => host[Symbol.asyncDispose]())
    return host
  }
  return { database, one: await start(), two: await start() }
}

it('a family stays as small as it has to be when two daemons add to it at the same moment', async () => {
  const { database, one, two } = await daemons({ max_descendants: 5 })
  const manifest_toml = 'name = "maker"\n[capabilities]\ntools = ["agent_spawn"]\nagent_spawn = true\n'
  const { agent_id: agent } = (await one.json('POST', '/api/agents', { manifest_toml })).body
  const spawns = await Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      const args = { manifest_toml: `name = "child-${at}"` }
      return (await (at % 2 ? one : two).json('POST', '/test/tools/agent_spawn', { agent_id: agent, args })).body
    }),
  )
  expect(spawns.filter(({ failed }) => failed === false)).toHaveLength(5)
  for (const { text } of spawns.filter(({ failed }) => failed !== false))
    expect(text).toContain('there are 5 agents of this family already')
  expect(await database.query(`SELECT count(*) FROM agents_agent WHERE name LIKE 'child-%'`)).toBe('5')
})

it('changes of one agent at two daemons at the same moment all hold', async () => {
  const { one, two } = await daemons()
  const { agent_id: agent } = (await one.json('POST', '/api/agents', { manifest_toml: 'name = "a"' })).body
  const at = `/api/agents/${agent}`
  for (let round = 0; round < 5; round++) {
    const statuses = await Promise.all([
      one.json('PATCH', at, { description: `description ${round}` }),
      two.json('PUT', `${at}/mode`, { mode: round % 2 ? 'full' : 'assist' }),
      two.json('PATCH', `${at}/identity`, { emoji: round % 2 ? '🦊' : '🐻' }),
    ])
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await one.json('GET', at)).body).toMatchObject({
      description: `description ${round}`,
      permission: round % 2 ? 'full' : 'assist',
      identity: { emoji: round % 2 ? '🦊' : '🐻' },
    })
  }
})
