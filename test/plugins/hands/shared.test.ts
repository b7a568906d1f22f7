import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { openTwoDaemons } from '../../support/two-daemons.ts'
import type { TwoDaemons } from '../../support/two-daemons.ts'
import { definition, handPlugins, writeHand } from './stage.ts'

const start = (database: TestDatabase): Promise<TestHost> =>
  startHost({
    plugins: [...handPlugins, 'providers/builtin', 'hands'],
    config: { database_url: database.url, plugins: { watch: false } },
  })
let daemons: TwoDaemons
beforeAll(async () => {
  daemons = await openTwoDaemons(start)
  // The second daemon has no file of this hand.
  await writeHand(daemons.one, 'tides')
})
afterAll(() => daemons?.[Symbol.asyncDispose]())

const activate = (host: TestHost, body: unknown = {}) => host.json('POST', '/api/hands/tides/activate', body)
const instances = async (host: TestHost): Promise<Json[]> =>
  (await host.json('GET', '/api/hands/active')).body.instances

it('an instance is the same at every daemon, also where its file is not', async () => {
  const { one, two } = daemons
  const { body: made } = await activate(one, { config: { loud: true } })
  const { instance_id: id } = made
  expect(await instances(two)).toEqual([made])
  expect((await two.json('GET', `/api/hands/instances/${id}/stats`)).body).toMatchObject({
    metrics: { Height: { value: null } },
  })
  const saved = await two.json('PUT', '/api/hands/tides/settings', { harbour: 'husum' })
  expect([saved.status, saved.body.config]).toEqual([200, { loud: true, harbour: 'husum' }])
  expect((await one.json('GET', '/api/hands/tides/settings')).body.current_values).toMatchObject({ harbour: 'husum' })
  expect((await two.json('POST', `/api/hands/instances/${id}/pause`)).status).toBe(200)
  expect(await instances(one)).toMatchObject([{ status: 'Paused' }])
  expect((await one.json('POST', `/api/hands/instances/${id}/resume`)).status).toBe(200)
  expect((await two.json('DELETE', `/api/hands/instances/${id}`)).status).toBe(200)
  expect(await instances(one)).toEqual([])
})

it('of two that are activated at the same moment one is made, and no agent is left of the other', async () => {
  const { one, two } = daemons
  await writeHand(two, 'tides', definition('tides').replace('tides-agent', 'tides-agent-too'))
  const answers = await Promise.all([activate(one), activate(two)])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 400])
  const names = (await one.json('GET', '/api/agents')).body.map(({ name }: Json) => name)
  expect(names.filter((name: string) => name.startsWith('tides-agent'))).toHaveLength(1)
  const { length } = await instances(two)
  expect(length).toBe(1)
})

/** Told by `hands.installed`. */
it('a hand that is installed, replaced and removed at one daemon is so at the others', async () => {
  const { one, two, database } = daemons
  const install = async (host: TestHost, name: string): Promise<void> => {
    const text = definition('ebb').replace('"Tides"', `"${name}"`)
    const answer = await host.json('POST', '/api/hands/install', { toml_content: text, update: true })
    expect([answer.status, answer.body.error]).toEqual([201, undefined])
  }
  const named = async (host: TestHost): Promise<unknown> => (await host.json('GET', '/api/hands/ebb')).body.name
  expect((await two.json('GET', '/api/hands/ebb')).status).toBe(404)
  await install(one, 'First')
  await eventually(async () => expect(await named(two)).toBe('First'))
  const { body: made } = await two.json('POST', '/api/hands/ebb/activate', {})
  expect(await one.json('DELETE', '/api/hands/ebb')).toMatchObject({
    status: 409,
    body: { error: { message: 'The hand "ebb" has an instance: deactivate first, with `svc hand stop <instance>`' } },
  })
  await install(two, 'Second')
  await eventually(async () => expect(await named(one)).toBe('Second'))
  expect((await one.json('DELETE', `/api/hands/instances/${made.instance_id}`)).status).toBe(200)
  // Who can write rows only cannot say what an agent does.
  await database.query(`UPDATE hands_file SET bytes = 'forged'; UPDATE hands_installed SET revision = 'forged'`)
  await install(one, 'Third')
  await eventually(async () => expect(await named(two)).toBe('Third'))
  await database.query(`UPDATE hands_installed SET revision = 'forged' WHERE name = 'ebb'`)
  expect((await one.json('POST', '/api/hands/install', { slug: 'wiki' })).status).toBe(201)
  await eventually(() =>
    expect(two.log.some((line) => line.includes('hand "ebb": its row was not written'))).toBe(true),
  )
  expect(await named(two)).toBe('Third')
  expect(await one.json('DELETE', '/api/hands/ebb')).toMatchObject({ status: 200, body: { status: 'removed' } })
  for (const host of [one, two])
    await eventually(async () => expect((await host.json('GET', '/api/hands/ebb')).status).toBe(404))
})

it('one that is paused at one daemon is woken by no other, also by one that starts later', async () => {
  const { one, two, database } = daemons
  const { body: rest } = await activate(one, { instance_name: 'rest' })
  const { body: due } = await activate(one, { instance_name: 'due' })
  expect((await two.json('POST', `/api/hands/instances/${rest.instance_id}/pause`)).status).toBe(200)
  await database.query(`UPDATE schedules_job SET next_run = ${Date.now() - 1000}, planned_at = 0`)
  await using late = await start(database)
  const lastRun = async ({ instance_id: id }: Json): Promise<unknown> =>
    (await instances(late)).find((each) => each.instance_id === id).last_run
  await eventually(async () => expect(await lastRun(due)).toEqual(expect.any(String)))
  expect(await lastRun(rest)).toBe(null)
})
