import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { auditDetails, callToolJson, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
const requests: { readonly url: string; readonly method: string | undefined; readonly key: string | null }[] = []
let respond = (): Response => new Response('pong')
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/workflows/', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'approvals', 'events', 'clock'],
    database: 'file',
    config: { plugins: { workflows: { max_output_chars: 2_000, max_active_runs: 5 } } },
    fetch(url, { method, headers }) {
      requests.push({ url: url.href, method, key: new Headers(headers).get('idempotency-key') })
      return Promise.resolve(respond())
    },
  })
  await test.spawn('writer', 'capabilities.network = ["example.com"]\ncapabilities.tools = ["*"]\n')
})
afterAll(() => test[Symbol.asyncDispose]())

/** The model repeats its prompt, so the output of a step is its prompt. */
const step = (name: string, prompt: string, more: object = {}) => ({ name, agent_name: 'writer', prompt, ...more })
const define = async (...steps: object[]): Promise<string> => {
  const { status, body } = await test.request<Json>('POST', '/api/workflows', { name: 'flow', steps })
  expect([status, body]).toEqual([201, { workflow_id: expect.any(String) }])
  return body.workflow_id
}
const run = (id: string, input = 'x', query = '') =>
  test.request<Json>('POST', `/api/workflows/${id}/run${query}`, { input })
const read = async (runId: string): Promise<Json> =>
  (await test.request<Json>('GET', `/api/workflows/runs/${runId}`)).body
const begin = async (id: string, input?: string): Promise<string> => {
  const { status, body } = await run(id, input, '?wait=false')
  expect(status).toBe(202)
  return body.run_id
}
const act = (runId: string, action: string, body: object = {}) =>
  test.request<Json>('POST', `/api/workflows/runs/${runId}/${action}`, body)
const settled = (runId: string, state: string): Promise<Json> =>
  eventually(async () => {
    const found = await read(runId)
    expect(found.state).toBe(state)
    return found
  })
const results = (found: Json): unknown[] =>
  found.step_results.map(({ step_name: name, output }: Json) => [name, output])

/** What each mode does: steps, the output of the run for the input `x`, and the results. */
const modes: readonly [string, object[], string, unknown[]][] = [
  [
    'sequential: an output is the next input, and a variable',
    [step('a', 'a({{input}})', { output_var: 'first' }), step('b', 'b({{input}} {{first}} {{run_input}})')],
    'b(a(x) a(x) x)',
    [
      ['a', 'a(x)'],
      ['b', 'b(a(x) a(x) x)'],
    ],
  ],
  [
    'fan_out and collect: the same input, joined in the order of the steps',
    [
      step('a', 'a({{input}})', { mode: 'fan_out', output_var: 'left' }),
      step('b', 'b({{input}})', { mode: 'fan_out' }),
      { name: 'all', mode: 'collect', output_var: 'both' },
      step('c', '{{left}}|{{both}}|{{input}}'),
    ],
    'a(x)|a(x)\n\n---\n\nb(x)|a(x)\n\n---\n\nb(x)',
    [
      ['a', 'a(x)'],
      ['b', 'b(x)'],
      ['all', 'a(x)\n\n---\n\nb(x)'],
      ['c', 'a(x)|a(x)\n\n---\n\nb(x)|a(x)\n\n---\n\nb(x)'],
    ],
  ],
  [
    'conditional: one whose condition does not hold leaves no result, and the input passes through',
    [
      step('a', 'YES {{input}}'),
      step('no', 'never', { mode: 'conditional', condition: 'absent' }),
      step('yes', '{{input}}!', { mode: 'conditional', condition: 'yes' }),
      step('long', 'never', { mode: 'conditional', condition: '{{ length(input) > 100 }}' }),
    ],
    'YES x!',
    [
      ['a', 'YES x'],
      ['yes', 'YES x!'],
    ],
  ],
  [
    'loop: its output is its next input until the condition holds',
    [step('grow', '{{input}}+{{iteration}}', { mode: 'loop', max_iterations: 9, until: '+3' })],
    'x+1+2+3',
    [
      ['grow (iter 1)', 'x+1'],
      ['grow (iter 2)', 'x+1+2'],
      ['grow (iter 3)', 'x+1+2+3'],
    ],
  ],
  [
    'loop: ends with its last iteration',
    [step('grow', '{{input}}.', { mode: 'loop', max_iterations: 2, until: 'never' })],
    'x..',
    [
      ['grow (iter 1)', 'x.'],
      ['grow (iter 2)', 'x..'],
    ],
  ],
]

describe('the modes', () => {
  it.each(modes)('%s', async (_, steps, output, expected) => {
    const { status, body } = await run(await define(...steps))
    expect([status, body]).toEqual([200, { run_id: expect.any(String), output, status: 'completed' }])
    const found = await read(body.run_id)
    expect(results(found)).toEqual(expected)
    expect(found).toMatchObject({ state: 'Completed', steps_completed: expected.length, input: 'x', error: null })
  })

  it('a value with placeholders is not expanded again, and a long output is cut', async () => {
    const id = await define(step('a', '{{input}}', { output_var: 'v' }), step('b', '{{v}}'))
    expect((await run(id, '{{v}} {{run_id}}')).body.output).toBe('{{v}} {{run_id}}')
    const long = (await run(id, 'y'.repeat(3_000))).body.output
    expect(long).toContain('[cut: ')
    expect(long.length).toBeLessThan(2_200)
    const twice = await define(step('a', '{{input}}{{input}}'))
    expect((await run(twice, 'z'.repeat(300_000))).body.error.message).toMatch(/^step "a" failed: .*longer than 500000/)
  })
})

describe('a step that fails', () => {
  it('ends the run with an error that names it, which is on record', async () => {
    const failing = await define(
      step('first', '{{input}}'),
      step('ask', 'other', { type: 'http', with: { url: 'https://example.com/' } }),
    )
    respond = () => new Response('no', { status: 500 })
    const { status, body } = await run(failing)
    respond = () => new Response('pong')
    expect([status, body.error]).toMatchObject([
      422,
      { code: 'workflow_failed', message: 'step "ask" failed: the server answered 500: no' },
    ])
    const found = await read(body.error.details.run_id)
    expect(found).toMatchObject({ state: 'Failed', steps_completed: 1, error: body.error.message })
    expect((await auditDetails(test, 'workflow_failed'))[0]).toContain('step "ask" failed')
  })

  it('is skipped with its input unchanged, or tried again as often as it may', async () => {
    respond = () => new Response('no', { status: 500 })
    const http = (more: object) => ({
      name: 'get',
      type: 'http',
      with: { url: 'https://example.com/' },
      agent_name: 'writer',
      ...more,
    })
    const skipped = await run(await define(http({ error_mode: 'skip' }), step('b', 'b({{input}})')))
    expect(skipped.body.output).toBe('b(x)')
    expect((await read(skipped.body.run_id)).step_results[0]).toMatchObject({ state: 'skipped', output: null })

    requests.length = 0
    let left = 2
    respond = () => (left-- > 0 ? new Response('no', { status: 503 }) : new Response('pong'))
    const retried = await run(await define(http({ error_mode: 'retry', max_retries: 2, retry_delay_secs: 0 })))
    respond = () => new Response('pong')
    expect(retried.body.output).toBe('pong')
    expect((await read(retried.body.run_id)).step_results.map(({ state, attempt }: Json) => [attempt, state])).toEqual([
      [1, 'failed'],
      [2, 'failed'],
      [3, 'completed'],
    ])
    expect(new Set(requests.map(({ key }) => key)).size).toBe(3)
  })
})

describe('the other step types', () => {
  it('wait for an event without holding anything, also over a restart', async () => {
    const id = await define(
      { name: 'until', type: 'wait', with: { event: 'report.ready' } },
      step('b', 'got {{input}}'),
    )
    const runId = await begin(id)
    await eventually(async () => expect((await read(runId)).step_results).toMatchObject([{ state: 'waiting' }]))
    await test.restart()
    const writer = (await test.request<Json>('GET', '/api/agents')).body[0].id
    await test.callTool('event_publish', { event_type: 'report.ready', payload: { n: 1 } }, { agentId: writer })
    expect(await settled(runId, 'Completed')).toMatchObject({ output: 'got {"n":1}' })
  })

  it('an approval goes on with its input when a person agrees, and fails when not', async () => {
    const id = await define(
      { name: 'ok', type: 'approval', prompt: 'Publish {{input}}?' },
      step('b', 'published {{input}}'),
    )
    for (const [answer, state, text] of [
      ['approve', 'Completed', 'published x'],
      ['reject', 'Failed', 'step "ok" failed: operator rejected it'],
    ] as const) {
      const runId = await begin(id)
      const approval = await eventually(async () => {
        const { body } = await test.request<Json>('GET', '/api/approvals?status=pending')
        expect(body.approvals).toMatchObject([{ agent_name: 'the workflow "flow"', action_summary: 'Publish x?' }])
        return body.approvals[0]
      })
      await test.request('POST', `/api/approvals/${approval.id}/${answer}`, {})
      const found = await settled(runId, state)
      expect(found.output ?? found.error).toBe(text)
    }
  })

  it('an approval of a run that is cancelled is taken back, and so is that of a tool', async () => {
    const pending = async (count: number): Promise<Json[]> =>
      eventually(async () => {
        const { body } = await test.request<Json>('GET', '/api/approvals?status=pending')
        expect(body.approvals).toHaveLength(count)
        return body.approvals
      })
    const tool = { type: 'tool', agent_name: 'writer', with: { tool: 'workflow_run', args: { workflow: 'none' } } }
    const id = await define(
      { name: 'ask', type: 'approval', prompt: 'Really?', mode: 'fan_out' },
      { name: 'call', mode: 'fan_out', ...tool },
    )
    const runId = await begin(id)
    const asked = await pending(2)
    await act(runId, 'cancel')
    await pending(0)
    for (const { id: approval } of asked)
      expect((await test.request('POST', `/api/approvals/${approval}/approve`, {})).status).toBe(409)
    expect((await read(runId)).step_results.map(({ state }: Json) => state)).toEqual(['cancelled', 'cancelled'])
  })

  it('another workflow runs inside, at most so deep', async () => {
    const inner = await define(step('a', 'inner({{input}})'))
    const outer = await define(
      { name: 'nested', type: 'workflow', prompt: '{{input}}', with: { workflow: inner } },
      step('b', 'outer({{input}})'),
    )
    const { body } = await run(outer)
    expect(body.output).toBe('outer(inner(x))')
    const child = (await test.request<Json>('GET', `/api/workflows/${inner}/runs`)).body[0]
    expect(child).toMatchObject({ parent_run_id: body.run_id, state: 'Completed' })
    const self = await define(step('a', '{{input}}'))
    await test.request('PUT', `/api/workflows/${self}`, {
      steps: [{ name: 'again', type: 'workflow', with: { workflow: self } }],
    })
    expect((await run(self)).body.error.message).toContain('plugins.workflows.max_depth allows')
  })

  it('a run inside is cancelled with the run that waits for it', async () => {
    const inner = await define({ name: 'hold', type: 'wait', with: { event: 'never.comes' } })
    const runId = await begin(await define({ name: 'nested', type: 'workflow', with: { workflow: inner } }))
    const child = async (): Promise<Json> => (await test.request<Json>('GET', `/api/workflows/${inner}/runs`)).body[0]
    await eventually(async () => expect(await child()).toMatchObject({ parent_run_id: runId, state: 'Running' }))
    await act(runId, 'cancel')
    await eventually(async () => expect((await child()).state).toBe('Cancelled'))
  })

  it('a tool is called as in a turn of the agent: its rights, approvals, and the result goes on', async () => {
    await test.spawn('bare', 'capabilities.tools = []\n')
    const tool = (agent: string, name: string, args: object = {}) => ({
      name: 'call',
      type: 'tool',
      agent_name: agent,
      with: { tool: name, args },
    })
    const refused = await run(await define(tool('bare', 'system_time')))
    expect(refused.body.error.message).toContain('The tool "system_time" is not granted')
    const args = { event_type: 'made', payload: '{{input}}' }
    expect((await run(await define(tool('writer', 'event_publish', args)), 'y')).body.output).toContain('event_id')

    const inner = await define(step('a', 'inner({{input}})'))
    await test.request('PUT', `/api/workflows/${inner}`, { run_by: ['writer'] })
    const runId = await begin(await define(tool('writer', 'workflow_run', { workflow: inner, input: '{{input}}' })))
    const approval = await eventually(async () => {
      const { body } = await test.request<Json>('GET', '/api/approvals?status=pending')
      expect(body.approvals).toHaveLength(1)
      return body.approvals[0]
    })
    expect((await read(runId)).step_results).toMatchObject([{ state: 'waiting' }])
    await test.request('POST', `/api/approvals/${approval.id}/approve`, {})
    expect((await settled(runId, 'Completed')).output).toContain('inner(x)')
  })
})

describe('a run', () => {
  const waiting = () =>
    define({ name: 'hold', type: 'wait', with: { event: 'never.comes' } }, step('b', 'b({{input}})'))

  it('of a workflow that does not exist, or under something that is no id, is refused', async () => {
    const unknown = '7a0d7e9c-40f5-4d5b-8a62-2f2a4f5a0f11'
    expect((await run(unknown)).status).toBe(404)
    expect((await test.request('GET', `/api/workflows/${unknown}/runs`)).status).toBe(404)
    const { status, body } = await run('x')
    expect([status, body.error.message]).toEqual([400, 'id: Invalid workflow ID'])
  })

  it('is listed by state, paused, resumed and cancelled, each once', async () => {
    const id = await waiting()
    const runId = await begin(id)
    await eventually(async () => expect((await read(runId)).step_results).toMatchObject([{ state: 'waiting' }]))
    expect((await act(runId, 'pause')).body).toEqual({ status: 'paused', run_id: runId })
    expect((await act(runId, 'pause')).status).toBe(409)
    const { body: list } = await test.request<Json>('GET', `/api/workflows/${id}/runs`)
    expect(list).toMatchObject([
      { id: runId, workflow_name: 'flow', state: 'Paused', steps_completed: 0, completed_at: null },
    ])
    expect((await act(runId, 'resume')).status).toBe(200)
    expect((await act(runId, 'cancel')).status).toBe(200)
    expect((await act(runId, 'cancel')).status).toBe(409)
    expect((await act(runId, 'resume')).status).toBe(409)
    expect(await read(runId)).toMatchObject({
      state: 'Cancelled',
      completed_at: expect.any(String),
      step_results: [{ state: 'cancelled', completed_at: expect.any(String) }],
    })
    const page = async (query: string) =>
      (await test.request<Json>('GET', `/api/workflows/${id}/runs${query}`)).body.map((each: Json) => each.id)
    expect([await page('?state=Cancelled'), await page('?state=Failed'), await page('?offset=1')]).toEqual([
      [runId],
      [],
      [],
    ])
    expect((await act('nothing', 'cancel')).status).toBe(404)
  })

  it('is refused beyond max_active_runs at a time', async () => {
    const id = await waiting()
    const answers = await Promise.all(Array.from({ length: 10 }, () => run(id, 'x', '?wait=false')))
    const begun = answers.filter(({ status }) => status === 202)
    for (const { body } of begun) await act(body.run_id, 'cancel')
    expect(begun).toHaveLength(5)
    const refused = answers.find(({ status }) => status !== 202)
    expect([refused?.status, JSON.stringify(refused?.body)]).toEqual([
      429,
      expect.stringContaining('plugins.workflows.max_active_runs allows'),
    ])
    expect(await run(await define(step('a', 'a')))).toMatchObject({ status: 200 })
  })

  it('does not begin a step while it is paused, also over a restart', async () => {
    const runId = await begin(await waiting())
    await eventually(async () => expect((await read(runId)).step_results).toMatchObject([{ state: 'waiting' }]))
    await act(runId, 'pause')
    const writer = (await test.request<Json>('GET', '/api/agents')).body[0].id
    await test.callTool('event_publish', { event_type: 'never.comes', payload: 'now' }, { agentId: writer })
    await test.restart()
    expect(await read(runId)).toMatchObject({ state: 'Paused', steps_completed: 0 })
    await act(runId, 'resume')
    expect(await settled(runId, 'Completed')).toMatchObject({ output: 'b(now)' })
  })

  it('ends also when its workflow is deleted meanwhile, and is run again from a step', async () => {
    const id = await define(
      step('a', 'a({{input}})', { output_var: 'v' }),
      { name: 'hold', type: 'wait', with: { event: 'go.on' } },
      step('b', 'b({{input}} {{v}})'),
    )
    const runId = await begin(id)
    await eventually(async () => expect((await read(runId)).step_results).toMatchObject([{}, { state: 'waiting' }]))
    await test.request('DELETE', `/api/workflows/${id}`)
    const writer = (await test.request<Json>('GET', '/api/agents')).body[0].id
    await test.callTool('event_publish', { event_type: 'go.on', payload: 'a(x)' }, { agentId: writer })
    expect(await settled(runId, 'Completed')).toMatchObject({ output: 'b(a(x) a(x))' })
    const before = test.model.requests.length
    const again = (await act(runId, 'rerun', { step: 'b' })).body.run_id
    expect(await settled(again, 'Completed')).toMatchObject({
      output: 'b(a(x) a(x))',
      rerun_of: runId,
      steps_completed: 3,
    })
    expect(test.model.requests.length - before).toBe(1)
    expect((await act(runId, 'rerun', { step: 'c' })).status).toBe(400)
  })

  it('goes on with the definition that it began with when its workflow is changed meanwhile', async () => {
    const id = await waiting()
    const runId = await begin(id)
    await eventually(async () => expect((await read(runId)).step_results).toMatchObject([{ state: 'waiting' }]))
    const steps = [{ name: 'other', agent_name: 'writer', prompt: 'other' }]
    expect((await test.request('PUT', `/api/workflows/${id}`, { name: 'changed', steps })).status).toBe(200)
    const writer = (await test.request<Json>('GET', '/api/agents')).body[0].id
    await test.callTool('event_publish', { event_type: 'never.comes', payload: 'now' }, { agentId: writer })
    expect(await settled(runId, 'Completed')).toMatchObject({ output: 'b(now)', workflow_name: 'flow' })
    expect((await run(id)).body.output).toBe('other')
  })

  it('that is cancelled while a step acts ends at once, and a reload does not begin it again', async () => {
    const hanging = Promise.withResolvers<Response>()
    const isSent = Promise.withResolvers<void>()
    respond = () => {
      isSent.resolve()
      return hanging.promise as unknown as Response
    }
    const get = { name: 'get', type: 'http', with: { url: 'https://example.com/' }, agent_name: 'writer' }
    const id = await define(get, step('b', 'never'))
    const answer = run(id)
    await isSent.promise
    const [{ id: runId }] = (await test.request<Json>('GET', `/api/workflows/${id}/runs`)).body
    expect((await act(runId, 'cancel')).status).toBe(200)
    expect((await answer).body).toEqual({ run_id: runId, output: null, status: 'cancelled' })
    hanging.resolve(new Response(''))
    respond = () => new Response('pong')
    await test.reload()
    expect(await read(runId)).toMatchObject({ state: 'Cancelled', steps_completed: 0 })
    expect((await run(await define(step('a', 'a({{input}})')))).body.output).toBe('a(x)')
  })

  it('streams what happened before, then what happens, until its end', async () => {
    const runId = await begin(await waiting())
    await eventually(async () => expect((await read(runId)).step_results).toMatchObject([{ state: 'waiting' }]))
    const answer = await test.fetch(`/api/workflows/runs/${runId}/events`)
    await act(runId, 'cancel')
    const text = await answer.text()
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
    expect(events[0]).toMatchObject({ type: 'step', step: { step_name: 'hold', state: 'waiting' } })
    expect(events.at(-1)).toMatchObject({ type: 'run', run: { state: 'Cancelled' } })
  })

  it('of a tool begins once for a call, and says how far it is', async () => {
    const id = await define(step('a', 'a({{input}})'))
    await test.request('PUT', `/api/workflows/${id}`, { run_by: ['*'] })
    const agentId = (await test.request<Json>('GET', '/api/agents')).body[0].id
    const started = await callToolJson(test, agentId, 'workflow_run', { workflow: id, input: 'y' })
    expect(started).toMatchObject({ status: 'completed', output: 'a(y)' })
    expect(await callToolJson(test, agentId, 'workflow_status', { run_id: started.run_id })).toMatchObject({
      status: 'completed',
      steps: [{ step: 'a', state: 'completed' }],
    })
    const { text } = await test.callTool('workflow_cancel', { run_id: started.run_id }, { agentId })
    expect(text).toContain('The run is Completed already')
  })
})
