import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { auditDetails, callTool, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/agents', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'result-delivery', 'schedules', 'triggers', 'delegation', 'templates'],
    config: { plugins: { triggers: { max_triggers_per_agent: 3 } } },
  })
})
afterAll(() => test[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)
const spawn = async (toml: string): Promise<string> => {
  const made = await call('POST', '/api/agents', { manifest_toml: toml })
  expect([made.status, made.body.error, made.body.warnings]).toEqual([201, undefined, []])
  return made.body.agent_id
}
const schedulesOf = async (agentId: string): Promise<Json[]> =>
  (await call('GET', `/api/schedules?agent_id=${agentId}&ended=true`)).body.schedules
/** By pattern: those of one manifest are made in one moment. */
const triggersOf = async (agentId: string): Promise<Json[]> => {
  const { body } = await call('GET', `/api/triggers?agent_id=${agentId}`)
  return body.toSorted((a: Json, b: Json) => (JSON.stringify(a.pattern) < JSON.stringify(b.pattern) ? -1 : 1))
}

describe('the manifest of an agent', () => {
  it('makes its schedule and its triggers, changes them and takes them away', async () => {
    const head = 'name = "tides"\n'
    const id = await spawn(
      `${head}[schedule.periodic]\ncron = "0 8 * * *"\ntz = "Europe/Berlin"\nprompt = "Read the gauge."\n` +
        '[[triggers]]\npattern = { content_match = { substring = "flood" } }\nprompt_template = "Look: {{event}}"\n' +
        '[[triggers]]\npattern = "memory_update"\nmax_fires = 2\n',
    )
    const [schedule, ...others] = await schedulesOf(id)
    expect(others).toEqual([])
    expect(schedule).toMatchObject({
      agent_id: id,
      cron: '0 8 * * *',
      tz: 'Europe/Berlin',
      prompt: 'Read the gauge.',
      enabled: true,
      next_run: expect.any(String),
    })
    const [flood, update] = await triggersOf(id)
    expect([flood, update]).toMatchObject([
      { pattern: { content_match: { substring: 'flood' } }, prompt_template: 'Look: {{event}}', enabled: true },
      { pattern: { memory_update: {} }, max_fires: 2 },
    ])

    // What says the same stays what it is, with what a person did to it.
    await call('PUT', `/api/triggers/${flood.id}`, { enabled: false })
    await call('PUT', `/api/schedules/${schedule.id}/enable`, { enabled: false })
    const changed = await call('PATCH', `/api/agents/${id}`, {
      manifest_toml:
        `${head}[schedule.continuous]\ncheck_interval_secs = 600\n` +
        '[[triggers]]\npattern = { content_match = { substring = "flood" } }\nprompt_template = "Look: {{event}}"\n' +
        '[[triggers]]\npattern = "system"\n',
    })
    expect([changed.status, changed.body.warnings]).toEqual([200, []])
    expect(await schedulesOf(id)).toMatchObject([
      { id: schedule.id, schedule: { kind: 'every', every_secs: 600 }, enabled: false, next_run: null },
    ])
    expect(await triggersOf(id)).toMatchObject([
      { id: flood.id, enabled: false },
      { pattern: { system: {} }, enabled: true },
    ])

    // Another key of the manifest leaves them alone, also what a person removed.
    await call('DELETE', `/api/schedules/${schedule.id}`)
    await call('PATCH', `/api/agents/${id}`, { description: 'Reads gauges' })
    expect(await schedulesOf(id)).toEqual([])
    expect(await triggersOf(id)).toHaveLength(2)

    expect((await call('PATCH', `/api/agents/${id}`, { manifest_toml: head })).status).toBe(200)
    expect([await schedulesOf(id), await triggersOf(id)]).toEqual([[], []])
    await call('DELETE', `/api/agents/${id}`)
  })

  it('names conditions for the triggers of an agent that is proactive, which go with it', async () => {
    const id = await spawn(
      'name = "guard"\n[schedule.proactive]\nconditions = ["event:agent_terminated", "memory:user.*", "content:fire"]',
    )
    expect((await triggersOf(id)).map(({ pattern }) => pattern)).toEqual([
      { agent_terminated: {} },
      { content_match: { substring: 'fire' } },
      { memory_key_pattern: { key_pattern: 'user.*' } },
    ])
    expect(await schedulesOf(id)).toEqual([])
    await call('DELETE', `/api/agents/${id}`)
    expect(await triggersOf(id)).toEqual([])
    expect((await auditDetails(test, 'trigger_changed'))[0]).toContain('was removed')
  })

  it('ends its schedule with the agent, and gives one to a clone', async () => {
    const id = await spawn('name = "clock"\n[schedule.continuous]\n')
    const copy = (await call('POST', `/api/agents/${id}/clone`, { new_name: 'clock-2' })).body.agent_id
    expect(await schedulesOf(copy)).toMatchObject([{ agent_id: copy, schedule: { every_secs: 300 } }])
    await call('DELETE', `/api/agents/${id}`)
    expect(await schedulesOf(id)).toMatchObject([{ enabled: false, next_run: null }])
    await call('DELETE', `/api/agents/${copy}`)
  })

  const all = '[[triggers]]\npattern = "all"\n'
  it.each([
    ['[schedule.periodic]\ncron = "61 * * * *"', 3, 'schedule.periodic.cron', 'minute'],
    ['[schedule.periodic]\ncron = "0 8 * * *"\ntz = "Europe/Berln"', 4, 'schedule.periodic.tz', 'Europe/Berln'],
    ['[schedule]\nperiodic = { cron = 8 }', 3, 'schedule.periodic.cron', 'Expected string'],
    ['schedule = "daily"', 2, 'schedule', 'Expected "reactive"'],
    ['[schedule.periodic]\ncron = "0 8 * * *"\n[schedule.continuous]', 4, 'schedule.continuous', 'keep one of them'],
    ['[schedule.continuous]\ncheck_interval_secs = 5', 3, 'schedule.continuous.check_interval_secs', '60 to 86400'],
    ['[schedule.proactive]\nconditions = ["rain"]', 3, 'schedule.proactive.conditions.0', 'event:'],
    [`${all}[[triggers]]\npattern = "memory_updat"`, 5, 'triggers.1.pattern', 'did you mean "memory_update"'],
    ['[[triggers]]\nprompt_template = "x"', 2, 'triggers.0.pattern', 'is missing'],
    ['[[triggers]]\npattern = "all"\nmax_fires = -1', 4, 'triggers.0.max_fires', ''],
    ['[[triggers]]\npattern = "all"\ntarget_agent_id = "nobody"', 4, 'triggers.0.target_agent_id', 'nobody'],
    [`${all}${all}`, 4, 'triggers.1', 'the same as triggers.0'],
    [
      ['a', 'b', 'c', 'd'].map((key) => `[[triggers]]\npattern = {content_match={substring="${key}"}}`).join('\n'),
      2,
      'triggers',
      'max_triggers_per_agent',
    ],
  ])('%j is refused with line and key', async (text, line, key, reason) => {
    const answer = await call('POST', '/api/agents', { manifest_toml: `name = "wrong"\n${text}\n` })
    expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringContaining(reason)])
    expect(answer.body.error.message).toMatch(new RegExp(`^manifest_toml:${line}: ${RegExp.escape(key)}: `))
    expect((await call('GET', '/api/agents?q=wrong')).body).toEqual([])
  })

  it('of a template is named by its file', async () => {
    await mkdir(join(test.home, 'templates'))
    const toml = 'name = "late"\n[schedule.periodic]\ncron = "61 * * * *"\n'
    await writeFile(join(test.home, 'templates', 'late.toml'), toml)
    const answer = await call('POST', '/api/agents', { template: 'late' })
    expect([answer.status, answer.body.error.message]).toEqual([
      400,
      expect.stringContaining('late.toml:3: schedule.periodic.cron: '),
    ])
  })

  it('gives a child of an agent nothing that wakes it, unless that agent could', async () => {
    const rights = '[capabilities]\nagent_spawn = true\ntools = ["agent_spawn"'
    const parent = await spawn(`name = "mother"\n${rights}]`)
    const able = await spawn(`name = "planner"\n${rights}, "schedule_create"]`)
    const child = { manifest_toml: 'name = "child"\n[schedule.continuous]\n' }
    expect(await callTool(test, parent, 'agent_spawn', child)).toMatchObject({
      failed: true,
      text: expect.stringContaining('schedule: '),
    })
    const made = await callTool(test, able, 'agent_spawn', child)
    const { agent_id: id } = JSON.parse(made.text)
    const [schedule] = await schedulesOf(id)
    expect(schedule).toMatchObject({ enabled: true })
    // It is one that the other agent made, so that its turns may do no more than that one.
    expect(await callTool(test, able, 'schedule_delete', { id: schedule.id })).toMatchObject({ failed: false })
    for (const agent of [parent, able, id]) await call('DELETE', `/api/agents/${agent}`)
  })
})
