import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins, useTool } from '../plugin-test.ts'

let test: PluginTest
let strong = ''
let weak = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/delegation/', import.meta.url),
    builtIns: [...turnPlugins, 'kv', 'memory', 'queue', 'result-delivery', 'tasks', 'schedules', 'triggers'],
    database: 'file',
  })
  const tools = '"agent_send", "schedule_create", "trigger_create", "task_post"'
  weak = await test.spawn('weak', `capabilities.tools = [${tools}]\ncapabilities.agent_message = ["*"]\n`)
  strong = await test.spawn('strong')
})
afterAll(() => test[Symbol.asyncDispose]())

const broken = { fails: new Error('the model is on strike') }
const forbidden = { calls: [{ tool: 'kv_set', args: { key: 'stolen', value: 'x' } }] }
const failedTurns = async (): Promise<readonly Json[]> => {
  const { turns } = (await test.request<Json>('GET', `/api/agents/${strong}/turns`)).body
  return turns.filter(({ state }: Json) => state === 'failed')
}
const requestOf: Readonly<Record<string, () => Promise<unknown>>> = {
  message: () =>
    test.say(weak, 'go', { calls: [{ tool: 'agent_send', args: { agent_id: 'strong', message: 'x' } }] }, broken, 'no'),
  task: () => {
    test.model.answer({ calls: [{ tool: 'task_post', args: { title: 'x', description: '', assigned_to: 'strong' } }] })
    test.model.answer('posted', broken)
    return test.request('POST', `/api/agents/${weak}/message`, { message: 'go' })
  },
  schedule: async () => {
    await useTool(test, weak, 'schedule_create', { description: 'x', schedule: 'daily at 9', agent: 'strong' })
    const { schedules } = (await test.request<Json>('GET', '/api/schedules')).body
    test.model.answer(broken)
    await test.request('POST', `/api/schedules/${schedules.at(-1).id}/run`)
  },
  trigger: async () => {
    const pattern = { agent_spawned: { name_pattern: 'scout' } }
    await useTool(test, weak, 'trigger_create', { pattern, prompt_template: 'x', agent: 'strong', max_fires: 1 })
    test.model.answer(broken)
    await test.spawn('scout')
  },
}

it.each(Object.keys(requestOf))('a retried turn has the limits of the agent that asked for it by a %s', async (by) => {
  const before = new Set((await failedTurns()).map(({ turn_id: id }) => id))
  await requestOf[by]?.()
  const failed = await eventually(async () => {
    const turn = (await failedTurns()).find(({ turn_id: id }) => !before.has(id))
    expect(turn).toBeDefined()
    return turn
  })
  // A person tries it again, which fails too, and once more after a restart.
  test.model.answer(broken)
  const again = await test.request<Json>('POST', `/api/turns/${failed.turn_id}/retry`)
  expect(again.status).toBe(202)
  const second = again.body.turn_id
  await eventually(async () => expect((await failedTurns()).map(({ turn_id: id }) => id)).toContain(second))
  if (by === 'message') await test.restart()
  test.model.answer(forbidden, 'refused')
  const { turn_id: third } = (await test.request<Json>('POST', `/api/turns/${second}/retry`)).body
  await eventually(async () =>
    expect((await test.request<Json>('GET', `/api/turns/${third}`)).body).toMatchObject({ state: 'done' }),
  )
  expect(JSON.stringify(test.model.requests.at(-1))).toContain('who requested this, may not use kv_set itself')
  expect((await test.request('GET', `/api/memory/agents/${strong}/kv/stolen`)).status).toBe(404)
})
