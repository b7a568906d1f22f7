import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import { expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { turnPlugins } from '../plugin-test.ts'

const rocket = pluginText('rocket', {
  setup: `ctx.tools.add(defineTool({ name: 'launch', description: 'Launches.', risk: 'execute', input: v.object({}),
      run: async () => 'launched' }))
    return {}`,
})

it('a turn that waits for a person is limited to the rights of the agent that asked for it, after a restart too', async () => {
  await using folder = await temporaryFolder()
  await using test = await startPlugin({
    plugin: await writePlugin(join(folder.path, 'rocket'), rocket),
    builtIns: [...turnPlugins, 'approvals', 'kv', 'delegation', 'comms'],
    database: 'file',
  })
  await test.spawn('boss', '[capabilities]\ntools = ["launch"]\nagent_message = ["worker"]')
  const worker = await test.spawn('worker')
  test.model.answer(
    { calls: [{ tool: 'launch', args: {} }] },
    { calls: [{ tool: 'kv_set', args: { key: 'a', value: 'b' } }] },
    'Done.',
  )
  const asked = test
    .request('POST', '/api/comms/send', { from: 'boss', to: 'worker', content: 'Go.' })
    .catch((error: unknown) => error)
  const approvals = async (): Promise<readonly Json[]> =>
    (await test.request<Json>('GET', '/api/approvals')).body.approvals
  await eventually(async () => expect(await approvals()).toHaveLength(1))
  await test.restart()
  await asked
  const [approval] = await approvals()
  expect((await test.request('POST', `/api/approvals/${approval.id}/approve`)).status).toBe(200)
  await eventually(() => expect(test.model.requests).toHaveLength(3))
  const last = JSON.stringify(test.model.requests.at(-1))
  expect(last).toContain('launched')
  expect(last).toContain('who requested this, may not use kv_set itself')
  expect((await test.request('GET', `/api/memory/agents/${worker}/kv/a`)).status).toBe(404)
})
