import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { KEY, listed, operator, pair } from '../pairing/devices.ts'

/** What one daemon changes holds at the other a moment later, although that one has it in memory. */
let database: TestDatabase
let one: TestHost
let two: TestHost
beforeAll(async () => {
  database = await createTestDatabase()
  one = await start()
  two = await start()
}, 60_000)
afterAll(async () => {
  await two?.[Symbol.asyncDispose]()
  await one?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
})

function start(): Promise<TestHost> {
  return startHost({ config: { api_key: KEY, database_url: database.url, pairing: { enabled: true } } })
}
const call = async (host: TestHost, method: string, path: string, body?: unknown) => {
  const answer = await host.json(method, path, body, operator)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

it('a device that is paired at one is let in by the other, and no longer once it is removed', async () => {
  const statusAt = async (host: TestHost, headers: Record<string, string>) =>
    (await host.json('GET', '/api/agents', undefined, headers)).status
  const { id, bearer } = await pair(one)
  await eventually(async () => expect(await statusAt(two, bearer)).toBe(200))
  expect((await listed(two)).map(({ device_id }) => device_id)).toEqual([id])
  expect((await two.json('DELETE', `/api/pairing/devices/${id}`, undefined, operator)).status).toBeLessThan(300)
  expect(await statusAt(two, bearer)).toBe(401)
  await eventually(async () => expect(await statusAt(one, bearer)).toBe(401))
})

it('limits of the budget that two set are those of both', async () => {
  await Promise.all([one, two].map((host) => call(host, 'GET', '/api/budget')))
  await Promise.all([
    call(one, 'PUT', '/api/budget', { daily_limit_usd: 10 }),
    call(two, 'PUT', '/api/budget', { monthly_limit_usd: 100 }),
  ])
  for (const host of [one, two])
    await eventually(async () =>
      expect(await call(host, 'GET', '/api/budget')).toMatchObject({ daily_limit_usd: 10, monthly_limit_usd: 100 }),
    )
})

it('what a parent may no longer do, a child that another daemon made may not do either', async () => {
  const manifest = (name: string, more = '') => ({ manifest_toml: `name = "${name}"\n${more}` })
  const { agent_id: parent } = await call(one, 'POST', '/api/agents', manifest('parent'))
  const { agent_id: child } = await call(
    two,
    'POST',
    '/api/agents',
    manifest('child', `[metadata]\nparent_agent_id = "${parent}"`),
  )
  await call(one, 'PUT', `/api/agents/${parent}/mode`, { mode: 'observe' })
  await eventually(async () =>
    expect(await database.query(`SELECT permission FROM agents_agent WHERE id = '${child}'`)).toBe('observe'),
  )
})

it('schedules and triggers made at a daemon that ends are those of the other', async () => {
  const [agent] = await call(two, 'GET', '/api/agents')
  const third = await start()
  await call(third, 'POST', '/api/schedules', {
    agent_id: agent.id,
    schedule: { kind: 'at', at: inSeconds(3) },
    prompt: 'p',
  })
  await call(third, 'POST', '/api/triggers', { agent_id: agent.id, pattern: 'all', prompt_template: '{{event}}' })
  await third[Symbol.asyncDispose]()
  await one.json('POST', '/api/agents', { manifest_toml: 'name = "spawned"' }, operator)
  await eventually(async () => {
    expect(await database.query('SELECT count(*) FROM schedules_slot')).toBe('1')
    expect(Number(await database.query('SELECT count(*) FROM triggers_firing'))).toBeGreaterThan(0)
  })
})
const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString()
