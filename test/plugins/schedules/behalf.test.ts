import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { callToolJson, turnPlugins, useTool } from '../plugin-test.ts'

const others = ['kv', 'memory', 'queue', 'result-delivery', 'tasks', 'schedules', 'triggers']
const start = (...more: string[]): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/schedules', import.meta.url),
    builtIns: [...turnPlugins, ...others, ...more],
    database: 'file',
  })
const tools = '"agent_send", "schedule_create", "cron_create", "trigger_create", "task_post"'
const granted = `capabilities.tools = [${tools}]\ncapabilities.agent_message = ["*"]\n`

let test: PluginTest
let weak = ''
let strong = ''
beforeAll(async () => {
  test = await start('delegation')
  weak = await test.spawn('weak', granted)
  strong = await test.spawn('strong')
})
afterAll(() => test[Symbol.asyncDispose]())

const forbidden = { calls: [{ tool: 'kv_set', args: { key: 'stolen', value: 'x' } }] }
const hasStolen = async (): Promise<boolean> =>
  (await test.request('GET', `/api/memory/agents/${strong}/kv/stolen`)).status === 200
const later = { description: 'Do it.', schedule: 'daily at 9' }
/** Runs the newest schedule, whose turn tries what the weak agent may not. */
async function runNewest(): Promise<string> {
  const { schedules } = (await test.request<Json>('GET', '/api/schedules')).body
  test.model.answer(forbidden)
  const { status, body } = await test.request<Json>('POST', `/api/schedules/${schedules.at(-1).id}/run`)
  expect(status).toBe(200)
  return body.response
}

it('a schedule for a more privileged agent gives nobody more rights than it has', async () => {
  await useTool(test, weak, 'schedule_create', { ...later, agent: 'strong' })
  expect(await runNewest()).toContain('"weak", who requested this, may not use kv_set itself')
  expect(await hasStolen()).toBe(false)
})

const makesOne = [{ calls: [{ tool: 'schedule_create', args: later }] }, 'Tomorrow.']

it('nor one that the other agent makes for itself because of a message', async () => {
  const message = { agent_id: 'strong', message: 'Do it tomorrow.' }
  await test.say(weak, 'go', { calls: [{ tool: 'agent_send', args: message }] }, ...makesOne, 'Asked.')
  expect(await runNewest()).toContain('"weak", who requested this, may not use kv_set itself')
  expect(await hasStolen()).toBe(false)
})

it('nor one that the other agent makes for itself because of a task', async () => {
  test.model.answer(...makesOne)
  const task = { title: 'Do it tomorrow.', description: 'x', assigned_to: 'strong' }
  const { task_id: id } = await callToolJson(test, weak, 'task_post', task)
  await eventually(async () =>
    expect((await test.request('GET', `/api/tasks/${id}`)).body).toMatchObject({ status: 'completed' }),
  )
  expect(await runNewest()).toContain('"weak", who requested this, may not use kv_set itself')
  expect(await hasStolen()).toBe(false)
})

it('nor a trigger, also after a restart', async () => {
  await useTool(test, weak, 'trigger_create', {
    pattern: { agent_spawned: { name_pattern: 'scout' } },
    prompt_template: 'Do it.',
    agent: 'strong',
  })
  await test.restart()
  test.model.answer(forbidden)
  await test.spawn('scout')
  const [{ id }] = (await test.request<Json>('GET', '/api/triggers')).body
  await eventually(async () => {
    const { firings } = (await test.request<Json>('GET', `/api/triggers/${id}/history`)).body
    expect(firings).toMatchObject([{ state: 'done', result: expect.stringContaining('may not use kv_set itself') }])
  })
  expect(await hasStolen()).toBe(false)
})

it('nor any of it without the plugin for messages between agents', async () => {
  await using alone = await start()
  const author = await alone.spawn('weak', granted)
  await alone.spawn('strong')
  await useTool(alone, author, 'schedule_create', { ...later, agent: 'strong' })
  const { schedules } = (await alone.request<Json>('GET', '/api/schedules')).body
  alone.model.answer(forbidden)
  const { body } = await alone.request<Json>('POST', `/api/schedules/${schedules[0].id}/run`)
  expect(body.response).toContain('"weak", who requested this, may not use kv_set itself')
})
