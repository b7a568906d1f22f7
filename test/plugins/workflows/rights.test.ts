import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { callTool, callToolJson, turnPlugins } from '../plugin-test.ts'

let test: PluginTest
/** May run `granted` by its name, and nothing else. */
let granted = ''
let stranger = ''
/** Made by an agent, which chose the name that `run_by` has. */
let impostor = ''
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/workflows/', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'approvals'],
    config: { plugins: { workflows: { max_depth: 2 }, approvals: { policy: 'never' } } },
  })
  const tools = 'capabilities.tools = ["*"]\n'
  granted = await test.spawn('granted', tools)
  stranger = await test.spawn('stranger', tools)
  impostor = await test.spawn('impostor', `${tools}[metadata]\nparent_agent_id = "${stranger}"\n`)
})
afterAll(() => test[Symbol.asyncDispose]())

const define = async (name: string, rest: object = {}): Promise<string> => {
  const steps = [{ name: 'work', agent_name: 'granted', prompt: 'done {{input}}' }]
  const { status, body } = await test.request<Json>('POST', '/api/workflows', { name, steps, ...rest })
  expect([status, body]).toEqual([201, { workflow_id: expect.any(String) }])
  return body.workflow_id
}
const runs = async (): Promise<number> => (await test.request<Json>('GET', '/api/workflows/runs')).body.length

describe('an agent', () => {
  it('runs, lists and describes only workflows that it made or whose run_by names it', async () => {
    const secret = await define('secret')
    const id = await define('for granted', { run_by: ['granted', 'impostor'] })
    const before = await runs()
    for (const agent of [stranger, impostor])
      for (const [tool, args] of [
        ['workflow_run', { workflow: id }],
        ['workflow_start', { workflow: 'for granted' }],
        ['workflow_describe', { workflow_id: id }],
      ] as const)
        expect([tool, await callTool(test, agent, tool, args)]).toEqual([
          tool,
          { failed: true, text: expect.stringMatching(/^There is no workflow ".*" that you may run/) },
        ])
    expect((await callTool(test, granted, 'workflow_run', { workflow: secret })).failed).toBe(true)
    expect(await runs()).toBe(before)
    expect(await callToolJson(test, stranger, 'workflow_list')).toEqual({ total: 0, workflows: [] })
    expect(await callToolJson(test, granted, 'workflow_list')).toMatchObject({ total: 1, workflows: [{ id }] })

    expect(await callToolJson(test, granted, 'workflow_run', { workflow: 'for granted', input: 'x' })).toMatchObject({
      output: 'done x',
    })
    for (const run_by of [[impostor], ['*']]) {
      await test.request('PUT', `/api/workflows/${id}`, { run_by })
      expect(await callToolJson(test, impostor, 'workflow_run', { workflow: id })).toMatchObject({ output: 'done ' })
    }
    await test.request('PUT', `/api/workflows/${id}`, { run_by: [] })
    expect((await callTool(test, granted, 'workflow_run', { workflow: id })).failed).toBe(true)
  })

  it('reads and cancels only runs that it began', async () => {
    const id = await define('held', {
      run_by: ['granted', 'stranger'],
      steps: [{ name: 'hold', type: 'wait', with: { event: 'never' } }],
    })
    const { run_id: run } = await callToolJson(test, granted, 'workflow_start', { workflow: id })
    const none = { failed: true, text: `There is no run ${run} that you began` }
    for (const tool of ['workflow_status', 'workflow_cancel'])
      expect(await callTool(test, stranger, tool, { run_id: run })).toEqual(none)
    expect(await callToolJson(test, granted, 'workflow_status', { run_id: run })).toMatchObject({ run_id: run })
    expect((await callTool(test, granted, 'workflow_cancel', { run_id: run })).text).toBe('The run is cancelled.')
  })

  it('that runs workflows within a step of one is bounded by max_depth', async () => {
    const id = await define('endless', { run_by: ['granted'] })
    const again = { calls: [{ tool: 'workflow_run', args: { workflow: id, input: 'again' } }] }
    test.model.answer(again, again, again, 'refused', 'end', 'end')
    const { body } = await test.request<Json>('POST', `/api/workflows/${id}/run`, {})
    expect(body.status).toBe('completed')
    const { body: all } = await test.request<Json>('GET', `/api/workflows/${id}/runs`)
    expect(all).toHaveLength(3)
  })
})

it('run_by keeps what was sent, is checked, and shows in the audit trail', async () => {
  const id = await define('named', { run_by: [granted, 'stranger'] })
  const read = async () => (await test.request<Json>('GET', `/api/workflows/${id}`)).body
  expect(await read()).toMatchObject({ run_by: [granted, 'stranger'] })
  await test.request('PUT', `/api/workflows/${id}`, { description: 'other' })
  expect(await read()).toMatchObject({ run_by: [granted, 'stranger'] })
  const refused = await test.request<Json>('PUT', `/api/workflows/${id}`, { run_by: ['strangr'] })
  expect([refused.status, refused.body.error.message]).toEqual([
    400,
    'run_by: there is no agent "strangr"; did you mean "stranger"?',
  ])
})
