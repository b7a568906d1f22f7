import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { openTwoDaemons } from '../../support/two-daemons.ts'
import type { TwoDaemons } from '../../support/two-daemons.ts'
import { definition, handPlugins, writeHand } from './stage.ts'

let daemons: TwoDaemons
beforeAll(async () => {
  daemons = await openTwoDaemons((database) =>
    startHost({
      plugins: [...handPlugins, 'providers/builtin', 'hands'],
      config: { database_url: database.url, plugins: { watch: false } },
    }),
  )
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
