import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { openTwoDaemons } from '../../support/two-daemons.ts'
import type { TwoDaemons } from '../../support/two-daemons.ts'
import { KEY, listed, operator, pair } from '../pairing/devices.ts'

/** What one daemon changes holds at the other a moment later, although that one has it in memory. */
let stage: TwoDaemons
let database: TestDatabase
let one: TestHost
let two: TestHost
beforeAll(async () => {
  stage = await openTwoDaemons(start)
  ;({ database, one, two } = stage)
})
afterAll(() => stage[Symbol.asyncDispose]())

function start({ url }: TestDatabase): Promise<TestHost> {
  return startHost({ config: { api_key: KEY, database_url: url, pairing: { enabled: true } } })
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

it('turns of a device that is removed with what it began stop wherever they run', async () => {
  const { agent_id: agent } = await call(one, 'POST', '/api/agents', {
    manifest_toml: 'name = "asks"\n[capabilities]\ntools = ["system_time"]\n[metadata]\napproval = "always"\n',
  })
  const { id, bearer } = await pair(one)
  const say = (host: TestHost, headers: Record<string, string>) =>
    host.json('POST', `/api/agents/${agent}/message`, { message: 'use system_time {}' }, headers)
  const turns = async (): Promise<Json> => (await call(two, 'GET', `/api/agents/${agent}/turns`)).turns
  const states = async () => (await turns()).map(({ state }: { state: string }) => state).toSorted()
  // One waits for a person, the other behind it.
  const ended = [say(one, bearer), say(one, bearer)]
  await eventually(async () => expect(await states()).toEqual(['queued', 'waiting']))
  const path = `/api/pairing/devices/${id}?effects=stop`
  await eventually(async () => expect((await listed(two)).map(({ device_id }) => device_id)).toContain(id))
  const { stopped } = await call(two, 'DELETE', path)
  expect(stopped.map(({ kind }: { kind: string }) => kind)).toEqual(['turn', 'turn'])
  await eventually(async () => expect(await states()).toEqual(['cancelled', 'cancelled']))
  await Promise.all(ended)
  expect((await call(two, 'GET', `/api/approvals?agent_id=${agent}&status=pending`)).approvals).toEqual([])
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
  const third = await start(database)
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

/** What daemons have in memory of rows that are changed over the API, by the topic that tells the others of it. */
interface Copy {
  readonly topic: string
  readonly change: (host: TestHost) => Promise<unknown>
  /** Changes it once more, so that nobody is told of it. */
  readonly sql: string
  readonly read: (host: TestHost) => Promise<unknown>
  /** Before, after the change, and after that of `sql`. */
  readonly states: readonly [unknown, unknown, unknown]
}
const PERSON = '0190c2a4-5b6c-4d7e-8f90-a1b2c3d4e5f6'
const AT = '2026-11-20T12:00:00.000Z'
const copies: readonly Copy[] = [
  {
    topic: 'budgets.limits',
    change: (host) => call(host, 'PUT', '/api/budget', { hourly_limit_usd: 2 }),
    sql: "UPDATE budgets_limit SET hour_usd = 3 WHERE scope = ''",
    read: async (host) => (await call(host, 'GET', '/api/budget')).hourly_limit_usd,
    states: [0, 2, 3],
  },
  {
    topic: 'catalog.models',
    change: (host) => call(host, 'POST', '/api/models/aliases', { alias: 'writer', model_id: 'openai/gpt-4o' }),
    sql: "UPDATE catalog_alias SET model = 'gpt-4o-mini' WHERE alias = 'writer'",
    read: async (host) => (await call(host, 'GET', '/api/models/aliases')).aliases.writer,
    states: [undefined, 'gpt-4o', 'gpt-4o-mini'],
  },
  {
    topic: 'channels.accounts',
    change: (host) => call(host, 'POST', '/api/channels/ntfy/configure', { fields: { topic: 'one' } }),
    sql: `INSERT INTO channels_account (channel, account_id, enabled, settings, config, secrets, has_token, created_at, updated_at)
      SELECT channel, 'second', enabled, settings, config, secrets, has_token, created_at, updated_at FROM channels_account`,
    read: async (host) => {
      const lines = (await (await host.fetch('/api/metrics', { headers: operator })).text()).split('\n')
      const counts = lines.filter((line) => line.startsWith('svc_channels_accounts{'))
      return counts.reduce((sum, line) => sum + Number(line.split(' ')[1]), 0)
    },
    states: [0, 1, 2],
  },
  {
    topic: 'channels.bindings',
    change: (host) => call(host, 'POST', '/api/bindings', { agent: 'parent', match_rule: { channel: 'telegram' } }),
    sql: "UPDATE channels_binding SET agent = 'another'",
    read: async (host) => (await call(host, 'GET', '/api/bindings')).bindings.map(({ agent }: Json) => agent),
    states: [[], ['parent'], ['another']],
  },
  {
    topic: 'channels.people',
    change: (host) => call(host, 'DELETE', `/api/channels/telegram/pairing/${PERSON}`),
    sql: `INSERT INTO channels_paired VALUES ('second', 'telegram', 'default', '8', 'Bo', 'operator', '${AT}')`,
    read: async (host) =>
      (await call(host, 'GET', '/api/channels/telegram/pairing')).people.map(({ name }: Json) => name),
    states: [['Ada'], [], ['Bo']],
  },
  {
    topic: 'pairing.devices',
    change: (host) => pair(host, 'laptop'),
    sql: 'DELETE FROM pairing_device',
    read: async (host) => (await listed(host)).map(({ display_name: name }) => name),
    states: [[], ['laptop'], []],
  },
  {
    topic: 'providers.connections',
    change: async (host) => {
      await call(host, 'PUT', '/api/providers/groq/url', { url: 'http://127.0.0.1:18081/v1' })
      await call(host, 'POST', '/api/providers/groq/key', { api_key: 'sk-one' })
    },
    sql: `UPDATE providers_address SET url = 'http://127.0.0.1:18082/v1' WHERE provider = 'groq';
      DELETE FROM core_vault WHERE plugin = 'providers' AND name = 'groq'`,
    read: async (host) => {
      const { base_url: url, auth_status: key } = await call(host, 'GET', '/api/providers/groq')
      return [url, key]
    },
    states: [
      [expect.stringContaining('api.groq.com'), 'missing'],
      ['http://127.0.0.1:18081/v1', 'configured'],
      ['http://127.0.0.1:18082/v1', 'missing'],
    ],
  },
]

describe('what one daemon has in memory', () => {
  beforeAll(async () => {
    await database.query(`DELETE FROM pairing_device; DELETE FROM budgets_limit;
      INSERT INTO channels_paired VALUES ('${PERSON}', 'telegram', 'default', '7', 'Ada', 'operator', '${AT}')`)
  })

  it.each(copies)('is as another changed it: $topic', async ({ change, read, states: [before, after] }) => {
    for (const host of [one, two]) expect(await read(host)).toEqual(before)
    await change(one)
    await eventually(async () => expect(await read(two)).toEqual(after))
    expect(await read(one)).toEqual(after)
  })

  it('is read again when what was told may be lost', async () => {
    for (const { sql } of copies) await database.query(sql)
    await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE 'SELECT pg_notify(m.channel%')`)
    for (const { topic, read, states } of copies)
      await eventually(async () => expect([topic, await read(two)]).toEqual([topic, states[2]]))
  })
})
