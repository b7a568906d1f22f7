import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { auditDetails } from '../plugin-test.ts'
import { definition, startHands, writeHand } from './stage.ts'

/** A tool that waits until the test lets it go on, and what the hook of hands told. */
const held: { begun: number; release: () => void; told: Json[] } = { begun: 0, release: () => undefined, told: [] }
Object.assign(globalThis, { heldHand: held })
const PLUGIN = `import * as v from 'valibot'
import { definePlugin, defineTool, notify } from 'svc/sdk'
const HandChanged = notify('hands:changed')
export default definePlugin({
  name: 'holder',
  version: '1.0.0',
  config: v.object({}),
  setup({ hooks, tools }) {
    const held = globalThis.heldHand
    hooks.on(HandChanged, (told) => void held.told.push(told))
    tools.add(defineTool({
      name: 'hold', risk: 'read', description: 'Waits', input: v.object({}),
      run: (_, { signal }) => new Promise((resolve, reject) => {
        held.release = () => resolve('held')
        signal.addEventListener('abort', () => reject(signal.reason))
        held.begun++
      }),
    }))
    return {}
  },
})
`
let test: PluginTest
beforeAll(async () => {
  test = await startHands({ database: 'file', config: { approvals: { policy: 'never' } } })
  await test.restart(async () => {
    await mkdir(join(test.home, 'plugins'), { recursive: true })
    await writeFile(join(test.home, 'plugins', 'holder.ts'), PLUGIN)
  })
})
afterAll(() => test?.[Symbol.asyncDispose]())
beforeEach(async () => {
  held.begun = 0
  held.told = []
  await writeHand(test, 'tides', definition('tides').replace('"kv_list"', '"kv_list", "hold"'))
})

const call = async (method: string, path: string, body?: unknown): Promise<Json> => {
  const { status, body: answer } = await test.request<Json>(method, path, body)
  return status < 300 ? answer : { code: status, error: answer.error?.message }
}
const activate = (body?: unknown) => call('POST', '/api/hands/tides/activate', body)
const run = (made: Json) => call('POST', `/api/schedules/${made.schedule_id}/run`)
const end = (made: Json) => call('DELETE', `/api/hands/instances/${made.instance_id}`)
const shown = async (made: Json): Promise<Json> =>
  (await call('GET', '/api/hands/active')).instances.find(({ instance_id: id }: Json) => id === made.instance_id)
/** Asks for a run that waits in its tool. */
const runHeld = async (made: Json): Promise<{ readonly ended: Promise<Json> }> => {
  test.model.requests.length = 0
  test.model.answer({ calls: [{ tool: 'hold', args: {} }] })
  const ended = run(made)
  await eventually(() => expect(held.begun).toBe(1))
  return { ended }
}
const change = (sql: string): void => {
  const file = new DatabaseSync(join(test.home, 'data', 'svc.db'))
  try {
    file.exec(sql)
  } finally {
    file.close()
  }
}

it('a run that fails says why: in the status, the log, the audit log, the hook and a figure; the next one forgets it', async () => {
  const made = await activate()
  const lines = test.log.length
  test.model.answer({ fails: new Error('the tide is out') })
  await run(made)
  const { status } = await shown(made)
  expect(status).toMatch(/^Error: .*the tide is out/)
  const why = `hand "tides", instance "default": a run failed: ${status.slice('Error: '.length)}`
  await eventually(async () => expect((await auditDetails(test, 'hand_changed'))[0]).toBe(why))
  expect(test.log.slice(lines).filter((line) => line.includes('a run failed: '))).toHaveLength(1)
  await eventually(() => expect(held.told.at(-1)).toMatchObject({ change: 'failed', handId: 'tides' }))
  expect(held.told.at(-1).error).toContain('the tide is out')
  const runs = () => test.metrics('svc_hand_runs_total')
  expect((await runs()).get('svc_hand_runs_total{hand="tides",outcome="failed"}')).toBe(1)
  test.model.answer('fine')
  await run(made)
  expect((await shown(made)).status).toBe('Active')
  expect((await runs()).get('svc_hand_runs_total{hand="tides",outcome="done"}')).toBe(1)
  await end(made)
})

it('one that fails too often is not woken any more, says so, and goes on when it is resumed', async () => {
  const made = await activate()
  test.model.answer({ fails: new Error('the tide is out') })
  // Its fifth slot in a row.
  await test.restart(() =>
    change(`UPDATE schedules_job SET failures = 4, next_run = ${Date.now() - 1000}, planned_at = 0
      WHERE id = '${made.schedule_id}'`),
  )
  await eventually(async () =>
    expect(await shown(made)).toMatchObject({
      status: expect.stringMatching(/^Error: .*5.*the tide is out/s),
      next_run: null,
    }),
  )
  expect(await call('POST', `/api/hands/instances/${made.instance_id}/resume`)).toMatchObject({ status: 'resumed' })
  expect((await shown(made)).next_run).toEqual(expect.any(String))
  test.model.answer('fine')
  await run(made)
  expect((await shown(made)).status).toBe('Active')
  await end(made)
})

it('after a restart those that were due run once each, at the same moment too, and a paused one does not', async () => {
  const made = [await activate(), await activate({ instance_name: 'two' }), await activate({ instance_name: 'rest' })]
  const [one, two, rest] = made
  await call('POST', `/api/hands/instances/${rest.instance_id}/pause`)
  test.model.requests.length = 0
  await test.restart(() => change(`UPDATE schedules_job SET next_run = ${Date.now() - 1000}, planned_at = 0`))
  await eventually(async () => {
    for (const each of [one, two])
      expect(await shown(each)).toMatchObject({ status: 'Active', last_run: expect.any(String) })
  })
  expect(await shown(rest)).toMatchObject({ status: 'Paused', last_run: null })
  expect(test.model.requests).toHaveLength(2)
  expect((await call('POST', `/api/hands/instances/${rest.instance_id}/resume`)).status).toBe('resumed')
  expect(await shown(rest)).toMatchObject({ status: 'Active', next_run: expect.any(String) })
  for (const each of made) await end(each)
})

it('one that is deactivated while it runs stops at once, and leaves nothing', async () => {
  const made = await activate()
  const { ended } = await runHeld(made)
  expect(await end(made)).toMatchObject({ status: 'deactivated' })
  await ended
  expect(test.model.requests).toHaveLength(1)
  expect(await call('GET', '/api/hands/active')).toMatchObject({ total: 0 })
  expect(await call('GET', `/api/agents/${made.agent_id}`)).toMatchObject({ code: 404 })
  expect(await call('GET', `/api/schedules/${made.schedule_id}`)).toMatchObject({
    enabled: false,
    reason: 'its agent was removed',
    last_status: 'error: the turn was stopped',
  })
})

it('settings that change while it runs hold for the next call of the model', async () => {
  const made = await activate()
  const { ended } = await runHeld(made)
  await call('PUT', '/api/hands/tides/settings', { harbour: 'husum' })
  test.model.answer('done')
  held.release()
  expect(await ended).toMatchObject({ status: 'completed' })
  expect(test.model.requests.map(({ system }) => /\(harbour\): (\w+)/.exec(String(system))?.[1])).toEqual([
    'hamburg',
    'husum',
  ])
  await end(made)
})

it('one whose definition is edited or gone goes on with what it was activated with', async () => {
  const made = await activate()
  await writeHand(test, 'tides', definition('tides').replace('You watch the tides.', 'You watch the moon.'))
  const other = await activate({ instance_name: 'moon' })
  await rm(join(test.home, 'hands', 'tides'), { recursive: true })
  expect(await call('GET', '/api/hands/tides')).toMatchObject({ code: 404 })
  test.model.requests.length = 0
  for (const each of [made, other]) expect(await run(each)).toMatchObject({ status: 'completed' })
  expect(test.model.requests.map(({ system }) => /You watch the (\w+)/.exec(String(system))?.[1])).toEqual([
    'tides',
    'moon',
  ])
  expect(await call('PUT', '/api/hands/tides/settings?instance=moon', { loud: true })).toMatchObject({ status: 'ok' })
  expect((await shown(other)).config.loud).toBe(true)
  for (const each of [made, other]) expect(await end(each)).toMatchObject({ status: 'deactivated' })
})

it('one whose definition cannot be read any more says so, and stops no other', async () => {
  const made = await activate()
  const other = await activate({ instance_name: 'two' })
  change(`UPDATE hands_instance SET definition = 'id = [' WHERE id = '${made.instance_id}'`)
  expect((await shown(made)).status).toMatch(/^Error: its definition cannot be used: HAND.toml:1: /)
  expect((await shown(other)).status).toBe('Active')
  expect(await call('GET', `/api/hands/instances/${made.instance_id}/stats`)).toMatchObject({ metrics: {} })
  expect(await call('PUT', '/api/hands/tides/settings?instance=default', { loud: true })).toMatchObject({ code: 409 })
  expect(await run(made)).toMatchObject({ status: 'completed' })
  for (const each of [made, other]) expect(await end(each)).toMatchObject({ status: 'deactivated' })
})
