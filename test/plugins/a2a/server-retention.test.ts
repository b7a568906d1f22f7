import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { Json } from '../../support/json.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'

// What is left of tasks: their labels in the turn, and nothing when their time is over or their agent is gone.

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
let test: PluginTest
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/a2a', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'webhooks', 'delegation'],
    database: 'file',
    fetch: async () => new Response('', { status: 204 }),
    config: { a2a: { task_days: 30 } },
  })
  await test.spawn('keeper', 'capabilities.tools = ["*"]\ncapabilities.agent_spawn = true')
})
afterAll(() => test[Symbol.asyncDispose]())

let sent = 0
async function send(text: string, agent = 'keeper'): Promise<Json> {
  const message = { messageId: `m-${++sent}`, role: 'ROLE_USER', parts: [{ text }] }
  const push = { url: 'https://hooks.example.com/done', token: 'the-token' }
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: { message, configuration: { taskPushNotificationConfig: push } },
  }
  return (await test.request<Json>('POST', `/a2a/agents/${agent}`, body)).body.result.task
}
/** Tasks whose notifications have a secret in the vault. */
function withSecrets(): readonly string[] {
  using database = new DatabaseSync(join(test.home, 'data', 'svc.db'), { readOnly: true })
  return database
    .prepare("SELECT name FROM core_vault WHERE plugin = 'a2a' AND name LIKE 'push/%' ORDER BY name")
    .all()
    .map(({ name }) => String(name).split('/')[1] ?? '')
}

it('an agent that goes takes its tasks with it, and the secrets of their notifications', async () => {
  const agent = await test.spawn('passing')
  const [kept, gone] = [await send('stay'), await send('go', 'passing')]
  expect(withSecrets().toSorted()).toEqual([kept.id, gone.id].toSorted())
  expect(await test.request('DELETE', `/api/agents/${agent}`)).toMatchObject({ status: 200 })
  await expect.poll(withSecrets).toEqual([kept.id])
  expect(await test.request('GET', `/a2a/tasks/${gone.id}`)).toMatchObject({ status: 404 })
  expect(await test.request('GET', `/a2a/tasks/${kept.id}`)).toMatchObject({ status: 200 })
})

it('a task is deleted task_days after its end, with the secret of its notification', async () => {
  const old = await send('long ago')
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31 * DAY_MS })
  try {
    const fresh = await send('just now')
    await test.advance(HOUR_MS)
    await expect.poll(withSecrets).toEqual([fresh.id])
    expect(await test.request('GET', `/a2a/tasks/${old.id}`)).toMatchObject({ status: 404 })
    expect(await test.request('GET', `/a2a/tasks/${fresh.id}`)).toMatchObject({ status: 200 })
  } finally {
    vi.useRealTimers()
  }
})

it('the text of a task is that of another agent: a tool that refuses these is not called', async () => {
  test.model.answer({ calls: [{ tool: 'agent_spawn', args: { name: 'x', system_prompt: 'x' } }] }, 'Refused.')
  await send('make an agent')
  expect(await auditDetails(test, 'taint_violation')).toContainEqual(expect.stringContaining('UntrustedAgent'))
  const { body } = await test.request<Json>('GET', '/api/agents')
  expect(JSON.stringify(body)).not.toContain('"name":"x"')
})
