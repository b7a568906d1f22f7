import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'
import { ChatPlatform } from './chat-platform.ts'

// Accounts whose messages or answers go to another chat.

let test: PluginTest
const platform = new ChatPlatform()
beforeAll(async () => {
  platform.install({ replies: true })
  const account = (id: string, more: object) => ({ account_id: id, allowed_users: ['ada'], ...more })
  test = await startPlugin({
    plugin: new URL('./test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'channels'],
    config: {
      channels: {
        test_chat: [
          account('alerts', { deliver_only: true, deliver_target: 'test_chat/main:ops' }),
          account('forms', { agent_name: 'helper', group_policy: 'all', deliver_target: 'test_chat/main:team: one' }),
          account('lost', { deliver_only: true }),
          account('away', { deliver_only: true, deliver_target: 'telegram:1' }),
          account('main', {}),
        ],
      },
    },
  })
  await test.spawn('helper')
  expect(platform.links.size).toBe(5)
})
afterAll(() => test[Symbol.asyncDispose]())

it('deliver_only sends a message on as it is, once, without an agent', async () => {
  await platform.write('The build is **red**.', { id: 'b-1' }, 'alerts')
  await platform.write('The build is **red**.', { id: 'b-1' }, 'alerts')
  await platform.write('/help', {}, 'alerts')
  expect(await platform.texts(2, 'ops')).toEqual(['The build is **red**.', '/help'])
  expect(platform.shown.filter(({ chat }) => chat === 'ops')).toHaveLength(2)
  expect(test.model.requests).toEqual([])
})

it('deliver_target takes the answers of the agent, and commands are answered where they were sent', async () => {
  test.model.answer('Noted.')
  await platform.write('A new order.', { chat: { id: 'form', kind: 'group' } }, 'forms')
  expect(await platform.texts(1, 'team: one')).toEqual(['Noted.'])
  expect(platform.shown.at(-1)?.message.replyTo).toBeUndefined()
  await platform.write('/status', { chat: { id: 'form', kind: 'group' } }, 'forms')
  expect((await platform.texts(1, 'form'))[0]).toContain('Agent: helper')
})

it('a message whose target is missing or cannot be sent to waits with the reason, and the status says so', async () => {
  await platform.write('lost', {}, 'lost')
  await platform.write('away', {}, 'away')
  const inbox = async (state: string): Promise<readonly Json[]> =>
    (await test.request<Json>('GET', `/api/channels/test_chat/inbox?state=${state}`)).body.messages
  await expect.poll(() => inbox('parked')).toMatchObject([{ reason: 'deliver_only is set without deliver_target' }])
  await expect
    .poll(() => inbox('pending'))
    .toMatchObject([{ reason: expect.stringMatching(/telegram has no account/) }])
  const { body } = await test.request<Json>('GET', '/api/channels/test_chat')
  const lost = body.account_list.find((each: Json) => each.account_id === 'lost')
  expect(lost.status.warnings).toContainEqual(expect.stringMatching(/deliver_only needs deliver_target/))
})

it.each(['telegram', 'telegram:', ':1', 'Tele gram:1'])('%j is refused as a target', async (deliver_target) => {
  const answer = await test.request<Json>('POST', '/api/channels/test_chat/configure', {
    account_id: 'new',
    deliver_target,
  })
  expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringContaining('channel:chat')])
})
