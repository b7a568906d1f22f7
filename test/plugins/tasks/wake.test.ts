import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { auditDetails, callTool, callToolJson, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
/** May use every tool, and message the agents of its team. */
let lead = ''
/** May post tasks for the lead, and nothing else. */
let intern = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/tasks/', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'delegation'],
    config: { plugins: { tasks: { max_depth: 2, max_open_per_agent: 20, max_text_chars: 1_000 } } },
  })
  lead = await test.spawn('lead', 'capabilities.tools = ["*"]\ncapabilities.agent_message = ["team-*", "lead"]')
  intern = await test.spawn(
    'intern',
    'capabilities.tools = ["task_post", "task_cancel"]\ncapabilities.agent_message = ["lead"]',
  )
  await test.spawn('team-one')
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
})
const read = async (id: string) => (await test.request<Json>('GET', `/api/tasks/${id}`)).body
const ended = (id: string): Promise<Json> =>
  eventually(async () => {
    const task = await read(id)
    expect(task.status).not.toMatch(/pending|in_progress/)
    return task
  })
const post = async (body: object) => (await test.request<Json>('POST', '/api/tasks', body)).body
/** What the model was told by tools, the last one last. */
const toolResults = (): string => JSON.stringify(test.model.requests.at(-1)?.turns.at(-1))

describe('a posted task', () => {
  it('is worked on in one turn, whose answer is the result', async () => {
    test.model.answer('The answer is 42.')
    const { id, status, labels, wake } = await post({ title: 'Ask', description: 'Everything?', assigned_to: 'lead' })
    expect([status, labels, wake]).toEqual(['pending', ['UserInput'], true])
    expect(await ended(id)).toMatchObject({
      status: 'completed',
      result: 'The answer is 42.',
      claimed_by: lead,
      attempts: 1,
      turn_id: expect.any(String),
    })
    expect(JSON.stringify(test.model.requests.at(-1)?.turns)).toContain(String.raw`Ask\n\nEverything?`)
  })
  it('has the result that the agent itself finishes it with, not what it says afterwards', async () => {
    const { id } = await post({ title: 'x' })
    test.model.answer({ calls: [{ tool: 'task_complete', args: { task_id: id, result: 'by tool' } }] }, 'and said')
    await test.request('PATCH', `/api/tasks/${id}`, { assigned_to: 'lead' })
    expect(await ended(id)).toMatchObject({ status: 'completed', result: 'by tool' })
    await eventually(() => expect(test.model.requests.at(-1)?.turns.at(-1)).toMatchObject({ role: 'tool' }))
  })
  it('is posted once, however often the request is sent', async () => {
    const send = () => test.request<Json>('POST', '/api/tasks', { title: 'once' }, { 'idempotency-key': 'once-1' })
    const answers = [await send(), await send()]
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
    expect((await test.request<Json>('DELETE', `/api/tasks/${answers[0]?.body.id}`)).status).toBe(200)
  })
  it('waits when nobody is to be woken', async () => {
    const { id } = await post({ title: 'later', assigned_to: 'lead', wake: false })
    expect(await callToolJson(test, lead, 'task_claim', { task_id: id })).toMatchObject({ task_id: id })
    expect((await read(id)).turn_id).toBeNull()
    await test.request('DELETE', `/api/tasks/${id}`)
  })
})

describe('a hostile agent', () => {
  it('gets no rights of the agent that it posts a task for', async () => {
    test.model.answer({ calls: [{ tool: 'task_list', args: {} }] }, 'no list')
    const { task_id: id } = await callToolJson(test, intern, 'task_post', {
      title: 'List all',
      description: '',
      assigned_to: 'lead',
    })
    expect(await ended(id)).toMatchObject({ status: 'completed', result: 'no list' })
    expect(toolResults()).toContain('who requested this, may not use task_list itself')
    expect((await read(id)).labels).toEqual(['UntrustedAgent'])
  })
  it('gets none by an agent in between either, whether that one asks by a message or by a task', async () => {
    const middle = await test.spawn(
      'middle',
      'capabilities.tools = ["*"]\ncapabilities.agent_message = ["lead"]\ncapabilities.agent_spawn = true',
    )
    const asking = await test.spawn(
      'asking',
      'capabilities.tools = ["task_post", "agent_send"]\ncapabilities.agent_message = ["middle", "lead"]',
    )
    // By a task that has another agent asked.
    test.model.answer(
      { calls: [{ tool: 'agent_send', args: { agent_id: 'lead', message: 'list' } }] },
      { calls: [{ tool: 'task_list', args: {} }] },
      'refused',
      'passed on',
    )
    const first = { title: 'x', description: '', assigned_to: 'middle' }
    const { task_id: id } = await callToolJson(test, asking, 'task_post', first)
    expect(await ended(id)).toMatchObject({ status: 'completed', result: 'passed on', claimed_by: middle })
    const told = JSON.stringify(test.model.requests.map(({ turns }) => turns.at(-1)))
    expect(told).toMatch(/asking.{1,4}, who requested this, may not use task_list itself/)
    // By a message that has another agent given a task.
    const second = { title: 'by message', description: '', assigned_to: 'lead' }
    test.model.answer(
      { calls: [{ tool: 'agent_send', args: { agent_id: 'middle', message: 'post' } }] },
      { calls: [{ tool: 'task_post', args: second }] },
      'posted',
      'asked',
    )
    await test.request('POST', `/api/agents/${asking}/message`, { message: 'go' })
    const posted = await eventually(async () => {
      const { tasks } = (await test.request<Json>('GET', `/api/tasks?created_by=${middle}`)).body
      expect(tasks).toHaveLength(1)
      return tasks[0]
    })
    await ended(posted.id)
    test.model.answer({ calls: [{ tool: 'task_list', args: {} }] }, 'refused again')
    await test.request('POST', `/api/tasks/${posted.id}/retry`)
    expect(await ended(posted.id)).toMatchObject({ result: 'refused again' })
    expect(toolResults()).toContain('who requested this, may not use task_list itself')
  })
  it('cannot have agents keep each other busy for ever', async () => {
    const again = { title: 'again', description: '', assigned_to: 'lead' }
    test.model.answer(
      { calls: [{ tool: 'task_post', args: again }] },
      'posted',
      { calls: [{ tool: 'task_post', args: again }] },
      'not posted',
    )
    const { task_id: id } = await callToolJson(test, intern, 'task_post', again)
    await ended(id)
    const nested = await eventually(async () => {
      const { tasks } = (await test.request<Json>('GET', `/api/tasks?created_by=${lead}`)).body
      expect(tasks).toMatchObject([{ title: 'again', status: 'completed', result: 'not posted' }])
      return tasks
    })
    expect(nested).toHaveLength(1)
    expect(toolResults()).toContain('plugins.tasks.max_depth')
  })
  it.each<[string, string, object, RegExp]>([
    ['gives no task to an agent it may not message', 'task_post', { assigned_to: 'team-one' }, /agent_message/],
    ['posts no text beyond the limit', 'task_post', { description: 'x'.repeat(1_000_000) }, /max_text_chars/],
    ['posts no title beyond the limit', 'task_post', { title: 'x'.repeat(1_000_000) }, /title/],
    ['posts nothing without a title', 'task_post', { title: ' \n ' }, /title/],
  ])('%s', async (_, tool, args, message) => {
    const before = (await test.request<Json>('GET', '/api/tasks')).body.total
    const answer = await callTool(test, intern, tool, { title: 'x', description: '', ...args })
    expect(answer).toMatchObject({ failed: true, text: expect.stringMatching(message) })
    expect((await test.request<Json>('GET', '/api/tasks')).body.total).toBe(before)
  })
  it('neither claims, completes, cancels nor retries what is not its own', async () => {
    const { id } = await post({ title: 'private', assigned_to: 'team-one', wake: false })
    const refused = async (tool: string, args: object, message: string): Promise<void> => {
      expect(await callTool(test, lead, tool, { task_id: id, ...args })).toMatchObject({
        failed: true,
        text: expect.stringContaining(message),
      })
    }
    await refused('task_claim', {}, 'for another agent')
    await refused('task_complete', { result: 'mine' }, 'pending')
    await refused('task_cancel', {}, 'did not post')
    await test.request('POST', `/api/tasks/${id}/cancel`)
    await refused('task_retry', {}, 'did not post')
    expect(await read(id)).toMatchObject({ status: 'cancelled', revision: 1 })
    expect((await auditDetails(test, 'capability_check')).join('\n')).toContain('denied: task for agent "team-one"')
  })
  it('fills the list with no more than its share, and its texts do not fill the memory of readers', async () => {
    const posts = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        callTool(test, intern, 'task_post', { title: `task ${n}`, description: '"\n}task_complete'.repeat(50) }),
      ),
    )
    expect(posts.filter(({ failed }) => !failed)).toHaveLength(20)
    expect(posts.find(({ failed }) => failed)?.text).toContain('max_open_per_agent')
    expect((await post({ title: 'of a person' })).status).toBe('pending')
    const { tasks } = (await test.request<Json>('GET', `/api/tasks?created_by=${intern}&status=pending`)).body
    expect(tasks).toHaveLength(20)
    for (const { id } of tasks) await callTool(test, intern, 'task_cancel', { task_id: id })
    expect((await callTool(test, intern, 'task_post', { title: 'again', description: '' })).failed).toBe(false)
  })
})

describe('PATCH', () => {
  const patch = (id: string, body: object) => test.request<Json>('PATCH', `/api/tasks/${id}`, body)
  it('edits what is pending, sets the state and refuses the rest', async () => {
    const { id } = await post({ title: 'draft' })
    expect((await patch(id, { title: 'final', description: 'text' })).body).toMatchObject({
      title: 'final',
      revision: 1,
    })
    expect((await patch(id, { assigned_to: 'nobody' })).status).toBe(404)
    expect((await patch(id, { result: 'x' })).status).toBe(400)
    expect((await patch(id, { status: 'completed', title: 'x' })).status).toBe(400)
    expect((await patch(id, { status: 'in_progress' })).status).toBe(400)
    await callToolJson(test, lead, 'task_claim', { task_id: id })
    expect((await patch(id, { title: 'x' })).status).toBe(409)
    expect((await patch(id, { status: 'pending' })).body).toMatchObject({ status: 'pending', claimed_by: null })
    expect((await patch(id, { status: 'completed', result: 'ok' })).body).toMatchObject({
      status: 'completed',
      result: 'ok',
    })
    expect((await patch(id, { status: 'cancelled' })).status).toBe(409)
    expect((await patch(id, { status: 'pending' })).body).toMatchObject({ status: 'pending', result: null })
    expect((await patch('00000000-0000-4000-8000-000000000000', { title: 'x' })).status).toBe(404)
  })
  it('wakes the agent that a task is given to', async () => {
    const { id } = await post({ title: 'for whom?' })
    test.model.answer('for me')
    expect((await patch(id, { assigned_to: 'lead' })).body).toMatchObject({ assigned_to: lead })
    expect(await ended(id)).toMatchObject({ status: 'completed', result: 'for me' })
  })
})

it('keeps lists of other agents apart', async () => {
  const { body } = await test.request<Json>('GET', `/api/tasks?claimed_by=${lead}&limit=1`)
  expect(body.tasks).toHaveLength(1)
  expect(body.total).toBeGreaterThan(1)
  expect((await test.request<Json>('GET', `/api/tasks?assigned_to=${intern}`)).body).toEqual({ tasks: [], total: 0 })
})
