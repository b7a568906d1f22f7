import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { ChatPlatform } from '../channels/chat-platform.ts'
import { turnPlugins } from '../plugin-test.ts'

let test: PluginTest
let platform: ChatPlatform
beforeAll(async () => {
  platform = new ChatPlatform()
  platform.install({ buttons: true })
  test = await startPlugin({
    plugin: new URL('../channels/test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'approvals', 'files', 'channels', 'queue', 'workflows'],
    config: {
      channels: { test_chat: { agent_name: 'helper', allowed_users: ['ada'], operators: ['olga'] } },
      plugins: { approvals: { policy: 'never' } },
    },
  })
  await test.spawn('helper')
})
afterAll(() => test[Symbol.asyncDispose]())

const write = (text: string, sender: string) =>
  platform.write(text, { chat: { id: 'chat', kind: 'group' }, mentionsBot: true, sender: { id: sender, name: sender } })

it('a run asks in the chat that it was asked for in, also after the turn, and goes on when an operator answers', async () => {
  const { body } = await test.request<Json>('POST', '/api/workflows', {
    name: 'publish',
    run_by: ['helper'],
    steps: [
      { name: 'ok', type: 'approval', prompt: 'Publish {{input}}?' },
      { name: 'sure', type: 'approval', prompt: 'Really?' },
      { name: 'write', agent_name: 'helper', prompt: 'published {{input}}' },
    ],
  })
  test.model.answer({ calls: [{ tool: 'workflow_start', args: { workflow: 'publish', input: 'news' } }] }, 'It runs.')
  await write('publish it', 'ada')
  const shown = await platform.texts(2, 'chat')
  expect(shown).toContain('It runs.')
  const id = /\/approve ([0-9a-f-]{36})/.exec(shown.join('\n'))?.[1] ?? ''
  const { body: pending } = await test.request<Json>('GET', '/api/approvals?status=pending')
  expect(pending.approvals).toMatchObject([{ id, agent_name: 'helper', action_summary: 'Publish news?' }])

  await write(`/approve ${id}`, 'ada')
  expect((await platform.texts(3, 'chat')).at(-1)).toContain('Only an operator')
  await write(`/approve ${id}`, 'olga')
  const further = (await platform.texts(5, 'chat')).slice(3)
  expect(further).toContain('Approved, once: Publish news?')
  const next = /\/approve ([0-9a-f-]{36})/.exec(further.join('\n'))?.[1] ?? ''
  expect(next).not.toBe(id)
  await write(`/approve ${next}`, 'olga')
  await eventually(async () => {
    const { body: runs } = await test.request<Json>('GET', `/api/workflows/${body.workflow_id}/runs`)
    expect(runs).toMatchObject([{ state: 'Completed', steps_completed: 3 }])
  })
})
