import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import Sqlite from 'better-sqlite3'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { auditDetails, callTool, callToolJson, turnPlugins, useTool } from '../plugin-test.ts'

let test: PluginTest
let one = ''
let two = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/tasks/', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'system'],
    database: 'file',
    config: { plugins: { tasks: { max_attempts: 2, max_open: 30, wake_assignee: false } } },
  })
  one = await test.spawn('one', 'capabilities.tools = ["*"]\ncapabilities.agent_message = ["*"]')
  two = await test.spawn('two')
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
})
const list = async (query = '') => (await test.request<Json>('GET', `/api/tasks/list${query}`)).body
beforeEach(async () => {
  for (const { id } of (await list()).tasks) await test.request('DELETE', `/api/tasks/${id}`)
})
const post = async (title: string, more: object = {}, by = one): Promise<string> =>
  (await callToolJson(test, by, 'task_post', { title, description: 'do it', ...more })).task_id
/** As if the time for it were over. */
function expire(id: string): void {
  const db = new Sqlite(join(test.home, 'data', 'svc.db'))
  db.prepare('UPDATE tasks_task SET lease_until = ? WHERE id = ?').run('2000-01-01T00:00:00.000Z', id)
  db.close()
}

it('a task is posted, claimed and completed, through whole turns', async () => {
  const posted = await useTool(test, one, 'task_post', { title: 'Sweep', description: 'The floor' })
  const { task_id: id } = JSON.parse(posted.slice(posted.indexOf('{')))
  expect((await list()).tasks).toMatchObject([
    {
      id,
      title: 'Sweep',
      description: 'The floor',
      status: 'pending',
      assigned_to: null,
      created_by: one,
      result: null,
    },
  ])
  expect(await useTool(test, two, 'task_claim')).toContain(id)
  expect(await callToolJson(test, one, 'task_list', { status: 'in_progress' })).toMatchObject({
    total: 1,
    tasks: [{ task_id: id, claimed_by: two }],
  })
  expect(await useTool(test, two, 'task_complete', { task_id: id, result: 'clean' })).toContain('Completed')
  expect(await callToolJson(test, one, 'task_status', { task_id: id })).toMatchObject({
    status: 'completed',
    result: 'clean',
    claimed_by: two,
  })
  // Whose business it is not learns nothing of it.
  const three = await test.spawn('three')
  expect(await callTool(test, three, 'task_status', { task_id: id })).toMatchObject({
    failed: true,
    text: expect.stringContaining(`No task ${id}`),
  })
  expect(await callToolJson(test, three, 'task_list')).toEqual({ total: 0, tasks: [] })
  expect(await callToolJson(test, two, 'task_list')).toMatchObject({ total: 1, tasks: [{ task_id: id }] })
  expect((await test.request('GET', '/api/tasks/status')).body).toEqual({
    total: 1,
    pending: 0,
    running: 0,
    in_progress: 0,
    completed: 1,
    failed: 0,
    cancelled: 0,
  })
})

describe('a claim', () => {
  it('takes the oldest, and each task goes to one agent however many ask', async () => {
    const ids: string[] = []
    for (let n = 0; n < 10; n++) ids.push(await post(`task ${n}`))
    const claimed = await Promise.all(
      Array.from({ length: 20 }, (_, n) => callTool(test, n % 2 ? one : two, 'task_claim')),
    )
    const taken = claimed.filter(({ text }) => text.startsWith('{')).map(({ text }) => JSON.parse(text).task_id)
    expect(taken.toSorted()).toEqual(ids.toSorted())
    expect(claimed.filter(({ text }) => text === 'No task is waiting.')).toHaveLength(10)
  })
  it('takes nothing that waits for another agent', async () => {
    const id = await post('for two', { assigned_to: 'two' })
    expect((await callTool(test, one, 'task_claim')).text).toBe('No task is waiting.')
    expect(await callToolJson(test, two, 'task_claim')).toMatchObject({ task_id: id })
    expect(
      await callTool(test, one, 'task_post', { title: 'x', description: '', assigned_to: 'nobody' }),
    ).toMatchObject({
      failed: true,
      text: expect.stringContaining('nobody'),
    })
  })
  it('ends with its time: another agent gets the task, and after some attempts it has failed', async () => {
    const id = await post('slow')
    await callToolJson(test, one, 'task_claim')
    expire(id)
    expect(await callToolJson(test, two, 'task_claim')).toMatchObject({ task_id: id })
    expect(await callTool(test, one, 'task_complete', { task_id: id, result: 'late' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('Another agent'),
    })
    expire(id)
    expect((await callTool(test, one, 'task_claim')).text).toBe('No task is waiting.')
    expect((await list('?status=failed')).tasks).toMatchObject([{ id, result: 'nobody finished it in time' }])
  })
  it('ends with the agent', async () => {
    const gone = await test.spawn('gone')
    const [free, own] = [await post('free'), await post('own', { assigned_to: 'gone' })]
    await callToolJson(test, gone, 'task_claim')
    await test.request('DELETE', `/api/agents/${gone}`)
    expect((await list('?status=pending')).tasks.map(({ id }: { id: string }) => id)).toEqual([free])
    expect((await list('?status=failed')).tasks.map(({ id }: { id: string }) => id)).toEqual([own])
  })
})

it('a claim ends when its agent is stopped', async () => {
  const idle = await test.spawn('idle')
  const id = await post('free')
  await callToolJson(test, idle, 'task_claim')
  expect((await test.request('POST', '/api/agents/bulk/stop', { agent_ids: [idle] })).status).toBe(200)
  await eventually(async () =>
    expect((await list()).tasks).toMatchObject([{ id, status: 'pending', claimed_by: null }]),
  )
  expect(await callTool(test, idle, 'task_complete', { task_id: id, result: 'x' })).toMatchObject({ failed: true })
})

it('every change is counted', async () => {
  const before = (await test.metrics('svc_tasks_total')).get('svc_tasks_total{event="completed"}') ?? 0
  const id = await post('counted')
  await callToolJson(test, one, 'task_claim')
  await callTool(test, one, 'task_complete', { task_id: id, result: 'x' })
  expect((await test.metrics('svc_tasks_total')).get('svc_tasks_total{event="completed"}')).toBe(before + 1)
})

it('only the agent that works on a task completes it, once', async () => {
  const id = await post('mine')
  expect(await callTool(test, one, 'task_complete', { task_id: id, result: 'x' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('pending'),
  })
  await callToolJson(test, one, 'task_claim')
  expect((await callTool(test, one, 'task_complete', { task_id: id, result: 'x' })).failed).toBe(false)
  expect(await callTool(test, one, 'task_complete', { task_id: id, result: 'y' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('completed'),
  })
  expect(await callTool(test, one, 'task_complete', { task_id: 'nothing', result: 'y' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('No task'),
  })
})

it('the queue takes only so many', async () => {
  for (let n = 0; n < 30; n++) await post(`task ${n}`)
  expect(await callTool(test, one, 'task_post', { title: 'more', description: '' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('30 tasks'),
  })
})

describe('an operator', () => {
  it('removes a task, and it is in the audit log', async () => {
    const id = await post('unwanted')
    expect((await test.fetch(`/api/tasks/${id}`, { method: 'DELETE' })).status).toBe(200)
    expect((await test.request('DELETE', `/api/tasks/${id}`)).status).toBe(404)
    expect((await test.request('DELETE', '/api/tasks/x')).status).toBe(400)
    expect((await auditDetails(test, 'config_change'))[0]).toContain(id)
  })
  it('lets a failed task be tried again, and no other', async () => {
    const id = await post('again')
    expect((await test.request('POST', `/api/tasks/${id}/retry`)).status).toBe(404)
    for (let attempt = 0; attempt < 2; attempt++) {
      await callToolJson(test, one, 'task_claim')
      expire(id)
    }
    await callTool(test, one, 'task_claim')
    expect((await test.request('POST', `/api/tasks/${id}/retry`)).body).toEqual({ status: 'retried', id })
    expect(await callToolJson(test, one, 'task_claim')).toMatchObject({ task_id: id })
  })
  it('lets anybody try again what an agent had that is gone: nobody else could ever take it', async () => {
    const gone = await test.spawn('leaving')
    const id = await post('orphan', { assigned_to: 'leaving' })
    await test.request('DELETE', `/api/agents/${gone}`)
    expect((await test.request('POST', `/api/tasks/${id}/retry`)).status).toBe(200)
    expect(await callToolJson(test, two, 'task_claim')).toMatchObject({ task_id: id })
  })
  it('removes and retries a task once, however many ask for it, and the audit log tells of one', async () => {
    const id = await post('contested')
    for (let attempt = 0; attempt < 2; attempt++) {
      await callToolJson(test, one, 'task_claim')
      expire(id)
    }
    await callTool(test, one, 'task_claim')
    const five = async (method: string, path: string): Promise<number[]> =>
      (await Promise.all(Array.from({ length: 5 }, () => test.request(method, path))))
        .map(({ status }) => status)
        .toSorted()
    expect(await five('POST', `/api/tasks/${id}/retry`)).toEqual([200, 404, 404, 404, 404])
    expect(await five('DELETE', `/api/tasks/${id}`)).toEqual([200, 404, 404, 404, 404])
    expect((await auditDetails(test, 'config_change')).filter((line) => line.includes(id))).toHaveLength(1)
    const changes = (await auditDetails(test, 'task_changed')).filter((line) => line.includes(id))
    expect(changes.filter((line) => line.includes('is to be tried again'))).toHaveLength(1)
  })
  it('finds the tasks that are running under both their names', async () => {
    const id = await post('busy')
    await callToolJson(test, one, 'task_claim')
    for (const name of ['running', 'in_progress'])
      expect(await list(`?status=${name}`)).toMatchObject({ total: 1, tasks: [{ id, status: 'in_progress' }] })
  })
  it('reads the list in pages', async () => {
    for (let n = 0; n < 5; n++) await post(`task ${n}`)
    expect(await list('?limit=2&offset=2')).toMatchObject({ total: 5, tasks: [{}, {}] })
    expect((await test.request('GET', '/api/tasks/list?status=odd')).status).toBe(400)
    expect((await test.request('GET', '/api/tasks/list?limit=-1')).status).toBe(400)
  })
})
