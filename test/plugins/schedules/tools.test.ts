import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { callTool, callToolJson, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
let scout = ''
let other = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/schedules', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'result-delivery', 'schedules'],
    database: 'file',
    config: { plugins: { schedules: { max_jobs_per_agent: 5 } } },
  })
  scout = await test.spawn('scout', 'capabilities.tools = ["*"]\ncapabilities.agent_message = ["team-*"]\n')
  other = await test.spawn('other')
  await test.spawn('team-news')
})
afterAll(() => test[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)

describe('an agent', () => {
  it('makes, lists and removes schedules of its own, in words or as an expression', async () => {
    const made = await callToolJson(test, scout, 'schedule_create', {
      description: 'Look at the inbox',
      schedule: 'weekdays at 18:30',
      tz: 'Europe/Berlin',
    })
    expect(made).toMatchObject({ agent_id: scout, schedule: '30 18 * * MON-FRI', tz: 'Europe/Berlin', enabled: true })
    expect(await callToolJson(test, scout, 'schedule_list')).toMatchObject({ schedules: [{ id: made.id }] })
    expect((await call('GET', `/api/schedules/${made.id}`)).body).toMatchObject({ created_by: scout })
    expect(await callTool(test, scout, 'schedule_delete', { id: made.id })).toMatchObject({ failed: false })
    expect(await callToolJson(test, scout, 'schedule_list')).toEqual({ schedules: [] })
  })

  it('makes cron jobs', async () => {
    const made = await callToolJson(test, scout, 'cron_create', {
      name: 'once',
      schedule: { kind: 'at', at: new Date(Date.now() + 3_600_000).toISOString() },
      action: { kind: 'agent_turn', message: 'Now.' },
    })
    expect(made).toMatchObject({ name: 'once', one_shot: true, agent_id: scout })
    expect(await callToolJson(test, scout, 'cron_list')).toMatchObject({ jobs: [{ id: made.id }] })
    expect(await callTool(test, scout, 'cron_cancel', { job_id: made.id })).toMatchObject({ failed: false })
  })

  it('makes none with a field that does not exist', async () => {
    const action = { kind: 'agent_turn', message: 'Now.' }
    const args = { name: 'x', schedule: '0 9 * * *', action, oneshot: true }
    const { text, failed } = await callTool(test, scout, 'cron_create', args)
    expect([failed, text]).toEqual([true, expect.stringContaining('oneshot')])
  })

  it('chooses no model that its manifest does not name', async () => {
    const action = { kind: 'agent_turn', message: 'Now.', model_override: 'gpt-5-pro' }
    const { text, failed } = await callTool(test, scout, 'cron_create', { name: 'x', schedule: '0 9 * * *', action })
    expect([failed, text]).toEqual([true, expect.stringContaining('among the models of its manifest')])
  })

  it.each([
    [{ description: 'x', schedule: 'daily at 9', timezone: 'Europe/Berlin' }, 'timezone'],
    [{ description: 'x', schedule: 'now and then' }, 'is not understood'],
    [{ description: 'x', schedule: '0 25 * * *' }, 'field 2 (hour)'],
    [{ description: 'x', schedule: 'daily at 9', tz: 'Mars' }, 'time zone "Mars"'],
    [{ description: 'x', schedule: 'daily at 9', agent: 'other' }, 'may not make schedules for "other"'],
    [{ description: 'x', schedule: 'daily at 9', agent: 'nobody' }, 'There is no agent "nobody"'],
  ])('is told what is wrong with %j', async (args, message) => {
    const { text, failed } = await callTool(test, scout, 'schedule_create', args)
    expect(failed).toBe(true)
    expect(text).toContain(message)
  })

  it('makes them for another one only if it may write to it, within the limits', async () => {
    const made = await callToolJson(test, scout, 'schedule_create', {
      description: 'x',
      schedule: 'hourly',
      agent: 'team-news',
    })
    expect(made.agent_id).not.toBe(scout)
    await call('DELETE', `/api/schedules/${made.id}`)
    for (let count = 0; count < 5; count++)
      await callToolJson(test, other, 'schedule_create', { description: 'x', schedule: 'hourly' })
    const sixth = await callTool(test, other, 'schedule_create', { description: 'x', schedule: 'hourly' })
    expect(sixth.text).toContain('plugins.schedules.max_jobs_per_agent')
  })

  it('changes no schedule that somebody else made, and none that a person disabled', async () => {
    const body = { agent_id: scout, cron: '0 9 * * *', prompt: 'Report.' }
    const { id } = (await call('POST', '/api/schedules', body)).body
    for (const [tool, args] of [
      ['schedule_delete', { id }],
      ['schedule_resume', { id }],
      ['cron_cancel', { job_id: id }],
      ['cron_enable', { job_id: id }],
    ] as const)
      expect(await callTool(test, scout, tool, args)).toMatchObject({
        failed: true,
        text: expect.stringContaining('did not make'),
      })
    const own = await callToolJson(test, scout, 'schedule_create', { description: 'x', schedule: 'hourly' })
    await call('PUT', `/api/schedules/${own.id}/enable`, { enabled: false })
    expect((await callTool(test, scout, 'schedule_resume', { id: own.id })).text).toContain('A person disabled')
  })
})
