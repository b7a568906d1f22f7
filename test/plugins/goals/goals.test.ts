import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { eventually } from '../../support/eventually.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { auditDetails, callTool, callToolJson, turnPlugins } from '../plugin-test.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let test: PluginTest
let scout = ''
let writer = ''
let other = ''
beforeAll(async () => {
  folder = await temporaryFolder()
  const listener = pluginText('listener', {
    setup: `ctx.hooks.on(notify('goals:changed'), ({ change, goal }) => ctx.log.info('heard ' + change + ' ' + goal.title))
    return {}`,
  })
  test = await startPlugin({
    plugin: await writePlugin(join(folder.path, 'listener'), listener),
    builtIns: [...turnPlugins, 'system', 'goals'],
    database: 'file',
    config: { plugins: { goals: { max_goals: 12, max_depth: 4 } } },
  })
  scout = await test.spawn('scout', '[capabilities]\ntools = ["*"]\nagent_message = ["writer"]\n')
  writer = await test.spawn('writer')
  other = await test.spawn('other')
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const NOWHERE = '018f0000-0000-7000-8000-000000000000'
const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)
const add = async (title: string, more: object = {}): Promise<Json> => {
  const { status, body } = await call('POST', '/api/goals', { title, ...more })
  expect([status, body.error]).toEqual([201, undefined])
  return body
}
const read = async (id: string): Promise<Json> => (await call('GET', `/api/goals/${id}`)).body
const remove = (id: string) => call('DELETE', `/api/goals/${id}`)

describe('goals', () => {
  it('are made, read, changed, listed by pages and deleted', async () => {
    const made = await add(' Publish the report ', { agent_id: 'scout', due_at: '2026-12-31T19:00:00+01:00' })
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      title: 'Publish the report',
      description: '',
      status: 'pending',
      progress: 0,
      agent_id: scout,
      parent_id: null,
      due_at: '2026-12-31T18:00:00.000Z',
      created_by: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    const second = await add('Second')
    const change = { status: 'in_progress', progress: 40, description: 'All of it', due_at: null, agent_id: writer }
    expect(await call('PUT', `/api/goals/${made.id}`, change)).toMatchObject({ status: 200, body: change })
    expect(await read(made.id)).toMatchObject({ ...change, title: 'Publish the report' })
    // Any status may follow any other.
    for (const status of ['completed', 'pending', 'cancelled'])
      expect((await call('PUT', `/api/goals/${made.id}`, { status })).body.status).toBe(status)
    expect((await call('GET', '/api/goals?limit=1&offset=1')).body).toMatchObject({
      items: [{ id: second.id }],
      total: 2,
      offset: 1,
      limit: 1,
    })
    expect((await call('GET', `/api/goals?status=cancelled&agent_id=${writer}`)).body).toMatchObject({
      items: [{ id: made.id }],
      total: 1,
    })
    expect((await remove(made.id)).body).toEqual({ status: 'deleted', goal_id: made.id, deleted: 1 })
    expect((await call('GET', `/api/goals/${made.id}`)).status).toBe(404)
    await remove(second.id)
    const trail = await auditDetails(test, 'goal_changed')
    expect(trail[0]).toContain('"Second" was deleted')
    expect(trail.find((text) => text.includes('progress'))).toContain('was changed')
  })

  it('have a hierarchy without cycles, which is deleted as a whole', async () => {
    const root = await add('root')
    const child = await add('child', { parent_id: root.id })
    const leaf = await add('leaf', { parent_id: child.id })
    const apart = await add('apart')
    const children = (await call('GET', `/api/goals/${root.id}/children`)).body
    expect(children).toMatchObject({ total: 1, children: [{ id: child.id, parent_id: root.id }] })
    const move = (id: string, parent: string | null) => call('PUT', `/api/goals/${id}`, { parent_id: parent })
    for (const [id, parent, reason] of [
      [root.id, root.id, 'its own parent'],
      [root.id, child.id, 'cycle'],
      [root.id, leaf.id, 'cycle'],
    ]) {
      const { status, body } = await move(id, parent)
      expect([status, body.error.message]).toEqual([400, expect.stringContaining(reason)])
    }
    expect((await move(root.id, NOWHERE)).status).toBe(404)
    expect((await call('POST', '/api/goals', { title: 'x', parent_id: NOWHERE })).status).toBe(404)
    // Two below `leaf` are one level too many.
    const tall = await add('tall')
    await add('low', { parent_id: tall.id })
    const refused = await move(tall.id, leaf.id)
    expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining('max_depth allows 4')])
    expect((await move(tall.id, child.id)).status).toBe(200)
    expect((await call('GET', '/api/goals?roots=true')).body.items.map(({ title }: Json) => title)).toEqual([
      'root',
      'apart',
    ])
    expect((await remove(root.id)).body.deleted).toBe(5)
    expect((await call('GET', '/api/goals')).body).toMatchObject({ total: 1, items: [{ id: apart.id }] })
    expect((await auditDetails(test, 'goal_changed'))[0]).toContain('with 4 below it')
    await remove(apart.id)
  })

  it('refuse two moves at once that would make a cycle together', async () => {
    const [one, two] = [await add('one'), await add('two')]
    const moves = await Promise.all([
      call('PUT', `/api/goals/${one.id}`, { parent_id: two.id }),
      call('PUT', `/api/goals/${two.id}`, { parent_id: one.id }),
    ])
    expect(moves.map(({ status }) => status).toSorted()).toEqual([200, 400])
    expect((await remove(two.id)).body.deleted + ((await remove(one.id)).body.deleted ?? 0)).toBe(2)
  })

  it.each<[name: string, body: Json, status: number, text: string]>([
    ['no title', {}, 400, 'title'],
    ['an empty title', { title: ' ' }, 400, 'title'],
    ['a long title', { title: 'x'.repeat(257) }, 400, 'title'],
    ['a long description', { title: 'x', description: 'x'.repeat(4097) }, 400, 'description'],
    ['half a character', { title: 'a \uD800 b' }, 400, 'title'],
    ['a NUL', { title: 'x', description: 'a\0b' }, 400, 'description'],
    ['another status', { title: 'x', status: 'done' }, 400, 'status'],
    ['too much progress', { title: 'x', progress: 101 }, 400, 'progress'],
    ['half a percent', { title: 'x', progress: 0.5 }, 400, 'progress'],
    ['no time', { title: 'x', due_at: 'tomorrow' }, 400, 'due_at'],
    ['a day that is none', { title: 'x', due_at: '2026-02-30T00:00:00Z' }, 400, 'due_at'],
    ['a parent that is no id', { title: 'x', parent_id: 'root' }, 400, 'parent_id'],
    ['an unknown agent', { title: 'x', agent_id: 'scuot' }, 404, 'did you mean "scout"'],
  ])('refuse %s', async (_name, body, status, text) => {
    const answer = await call('POST', '/api/goals', body)
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([
      status,
      expect.stringContaining(text.replaceAll('"', '\\"')),
    ])
    expect((await call('GET', '/api/goals')).body.total).toBe(0)
  })

  it('refuse more than plugins.goals.max_goals', async () => {
    const made = await Promise.all(Array.from({ length: 12 }, (_, index) => add(`goal ${index}`)))
    const { status, body } = await call('POST', '/api/goals', { title: 'one more' })
    expect([status, JSON.stringify(body)]).toEqual([429, expect.stringContaining('max_goals')])
    for (const { id } of made) await remove(id)
  })
})

describe('goals of agents', () => {
  it('are made, listed and updated by tools, each agent its own', async () => {
    const made = await callToolJson(test, scout, 'goal_create', { title: 'mine', due_at: '2027-01-01T00:00:00Z' })
    expect(made).toMatchObject({ title: 'mine', agent_id: scout, status: 'pending' })
    expect(await read(made.id)).toMatchObject({ created_by: scout })
    const part = await callToolJson(test, scout, 'goal_create', { title: 'p', parent_id: made.id, agent: 'writer' })
    expect(part).toMatchObject({ agent_id: writer, parent_id: made.id })
    const nobody = await add('nobody')
    const foreign = await add('foreign', { agent_id: other })
    const listed = await callToolJson(test, scout, 'goal_list')
    expect(listed.goals.map(({ title }: Json) => title)).toEqual(['mine', 'p', 'nobody'])
    for (const [agent, goal] of [
      [scout, made],
      [scout, part],
      [writer, part],
      [other, nobody],
    ]) {
      const input = { goal_id: goal.id, status: 'in_progress', progress: 50 }
      expect(await callToolJson(test, agent, 'goal_update', input)).toMatchObject({ progress: 50 })
    }
    for (const [tool, input, text] of [
      ['goal_update', { goal_id: foreign.id, progress: 5 }, 'that of another agent'],
      ['goal_update', { goal_id: made.id }, 'Give status, progress'],
      ['goal_update', { goal_id: NOWHERE, progress: 5 }, 'no goal'],
      ['goal_create', { title: 'x', agent: 'other' }, 'agent_message'],
      ['goal_create', { title: 'x', parent_id: foreign.id }, 'that of another agent'],
    ] as const) {
      const answer = await callTool(test, scout, tool, input)
      expect([answer.failed, answer.text]).toEqual([true, expect.stringContaining(text)])
    }
    expect(await read(foreign.id)).toMatchObject({ progress: 0 })
    for (const { id } of [made, nobody, foreign]) await remove(id)
  })

  it('stay when their agent is gone, without it', async () => {
    const doomed = await test.spawn('doomed')
    const goal = await add('kept', { agent_id: doomed, progress: 70 })
    expect((await call('DELETE', `/api/agents/${doomed}`)).status).toBe(200)
    expect(await read(goal.id)).toMatchObject({ agent_id: null, progress: 70 })
    await remove(goal.id)
  })

  it('are counted, and listeners are told of each', async () => {
    const root = await add('heard')
    await add('below', { parent_id: root.id })
    await remove(root.id)
    for (const text of ['created heard', 'created below', 'deleted heard', 'deleted below'])
      await eventually(() => expect(test.log.join('\n')).toContain(`heard ${text}`))
    expect([...(await test.metrics('svc_goal_changes_total')).keys()]).toContain(
      'svc_goal_changes_total{change="deleted"}',
    )
  })
})
