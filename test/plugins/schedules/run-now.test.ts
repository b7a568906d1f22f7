import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

let test: PluginTest
let agentId = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/schedules', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'result-delivery', 'workflows', 'schedules'],
    database: 'file',
  })
  agentId = await test.spawn('scout')
})
afterAll(() => test[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)
const add = async (more: object = {}): Promise<string> => {
  const job = { agent_id: agentId, cron: '0 9 * * *', prompt: 'Report.', ...more }
  const made = await call('POST', '/api/schedules', job)
  expect([made.status, made.body.error]).toEqual([201, undefined])
  return made.body.id
}
const run = (id: string, key?: string) =>
  test.fetch(`/api/schedules/${id}/run`, {
    method: 'POST',
    ...(key !== undefined && { headers: { 'idempotency-key': key } }),
  })
const slots = async (id: string): Promise<Json[]> => (await call('GET', `/api/schedules/${id}/slots`)).body.slots
/** The model does not answer until this is disposed of. */
function hanging(): Disposable {
  const { model } = test
  const { promise, resolve } = Promise.withResolvers<void>()
  const complete = model.complete.bind(model)
  model.complete = async function* wait(request, signal) {
    await promise
    yield* complete(request, signal)
  }
  return {
    [Symbol.dispose]() {
      model.complete = complete
      resolve()
    },
  }
}
const lastRequest = (): Json => test.model.requests.at(-1)

describe('an Idempotency-Key', () => {
  it('makes one run of any number of requests, at once and later, with one answer', async () => {
    const id = await add()
    test.model.answer('Once.')
    const answers = await Promise.all(['k1', 'k1', 'k1'].map((key) => run(id, key)))
    const later = await run(id, 'k1')
    const bodies = (await Promise.all([...answers, later].map((answer) => answer.json()))) as Json[]
    expect(bodies.map(({ response }) => response)).toEqual(['Once.', 'Once.', 'Once.', 'Once.'])
    expect(later.headers.get('idempotent-replayed')).toBe('true')
    expect(await slots(id)).toHaveLength(1)
    await (await run(id, 'k2')).json()
    expect(await slots(id)).toHaveLength(2)
  })

  it('keeps a failure too: it is not tried again behind the back of the caller', async () => {
    const id = await add()
    test.model.answer({ fails: new Error('the model is on strike') })
    expect((await run(id, 'f1')).status).toBe(500)
    expect((await run(id, 'f1')).status).toBe(500)
    expect(await slots(id)).toHaveLength(1)
  })

  it('is free again after a refusal', async () => {
    const id = await add()
    await call('PUT', `/api/agents/${agentId}/suspend`)
    const paused = await run(id, 'p1')
    expect([paused.status, JSON.stringify(await paused.json())]).toEqual([409, expect.stringContaining('is Paused')])
    expect(await slots(id)).toEqual([])
    await call('PUT', `/api/agents/${agentId}/resume`)
    expect((await run(id, 'p1')).status).toBe(200)
  })
})

it('requests without a key are runs of their own, also at the same moment', async () => {
  const id = await add()
  const answers = await Promise.all([run(id), run(id), run(id)])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(new Set((await slots(id)).map(({ slot }) => slot)).size).toBe(3)
})

it('a run whose job of the queue is cancelled answers at once', async () => {
  const id = await add()
  using _ = hanging()
  const asked = run(id)
  const job = await eventually(async () => {
    const { jobs } = (await call('GET', '/api/queue/schedule/jobs?state=running')).body
    expect(jobs).toHaveLength(1)
    return jobs[0].id
  })
  await call('DELETE', `/api/queue/schedule/jobs/${job}`)
  const answer = await asked
  expect(answer.status).toBe(409)
  expect(JSON.stringify(await answer.json())).toContain('cancelled')
})

describe('an action', () => {
  it('of a workflow runs it, and answers with its output', async () => {
    const steps = [{ name: 'shout', agent_name: 'scout', prompt: 'loud {{input}}' }]
    const { workflow_id: workflow } = (await call('POST', '/api/workflows', { name: 'digest', steps })).body
    const misspelt = { agent_id: agentId, cron: '0 9 * * *', prompt: 'cats', workflow_id: 'digets' }
    const refused = await call('POST', '/api/schedules', misspelt)
    expect([refused.status, refused.body.error.message]).toEqual([
      404,
      expect.stringContaining('did you mean "digest"'),
    ])
    const id = await add({ prompt: 'cats', workflow_id: 'digest' })
    const answer = (await (await run(id)).json()) as Json
    expect(answer).toMatchObject({
      status: 'completed',
      workflow_id: workflow,
      output: 'loud cats',
      response: 'loud cats',
    })
    expect((await call('GET', `/api/workflows/runs/${answer.run_id}`)).body).toMatchObject({
      state: 'Completed',
      cause: `schedule ${id}`,
    })
    expect(await slots(id)).toMatchObject([{ state: 'done', workflow_run_id: answer.run_id, turn_id: null }])
    const shown = (await call('GET', `/api/cron/jobs/${id}`)).body
    expect(shown.action).toEqual({ kind: 'workflow', workflow_id: workflow, input: 'cats' })
    expect((await call('PUT', `/api/cron/jobs/${id}`, shown)).status).toBe(200)
  })

  it('has the conversation that session_mode says', async () => {
    const sessionOf = async (turnId: string): Promise<string> =>
      (await call('GET', `/api/turns/${turnId}`)).body.session_id
    const session = (await call('GET', `/api/agents/${agentId}`)).body.session_id
    for (const [mode, isOwn] of [
      ['persistent', true],
      ['new', false],
      ['new', false],
    ] as const) {
      const { turn_id: turn } = (await (await run(await add({ session_mode: mode }))).json()) as Json
      expect((await sessionOf(turn)) === session).toBe(isOwn)
    }
  })

  it('asks the model of model_override', async () => {
    const turn = { kind: 'agent_turn', message: 'Hi.', model_override: 'fake/other-model' }
    await (await run(await add({ prompt: undefined, action: turn }))).json()
    expect(lastRequest()).toMatchObject({ model: 'other-model' })
  })
})
