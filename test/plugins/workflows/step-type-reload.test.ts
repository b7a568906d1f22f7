import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

let test: PluginTest
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../fixtures/step-type/', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'approvals', 'workflows'],
  })
})
afterAll(() => test[Symbol.asyncDispose]())

const begin = async (type: string): Promise<string> => {
  const steps = [{ name: 'own', type: `step-type/${type}` }]
  const { body } = await test.request<Json>('POST', '/api/workflows', { name: type, steps })
  const started = await test.request<Json>('POST', `/api/workflows/${body.workflow_id}/run?wait=false`, { input: 'x' })
  return started.body.run_id
}
const step = async (id: string): Promise<Json> =>
  (await test.request<Json>('GET', `/api/workflows/runs/${id}`)).body.step_results[0]
const ended = (id: string): Promise<Json> =>
  eventually(async () => {
    const { body } = await test.request<Json>('GET', `/api/workflows/runs/${id}`)
    expect(body.state).toBe('Completed')
    return body
  })

it('a run that waits in the step of a plugin goes on with its state when the plugin was replaced', async () => {
  const id = await begin('waits')
  await eventually(async () => expect(await step(id)).toMatchObject({ state: 'waiting' }))
  await test.reload()
  expect((await ended(id)).output).toBe('x {"since":1}')
})

it('a step that acts while its plugin is replaced is called again with the same key, and told so', async () => {
  const id = await begin('acts')
  await eventually(async () =>
    expect((await test.request<string[]>('GET', '/test/steps')).body).toContainEqual(
      expect.stringMatching(/^acts \S+ false$/),
    ),
  )
  const { key } = await step(id)
  await test.reload()
  expect((await ended(id)).output).toBe('x again')
  expect((await test.request<string[]>('GET', '/test/steps')).body).toEqual([`acts ${key} true`])
  expect(await step(id)).toMatchObject({ attempt: 1, state: 'completed' })
})
