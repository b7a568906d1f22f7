import { expect, it, vi } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { Handled } from '../../../plugins/channels/inbox/inbox.ts'
import { turnPlugins } from '../plugin-test.ts'
import { eventually } from '../../support/eventually.ts'
import { ChatPlatform } from './chat-platform.ts'
import { account, openTables, startInbox } from './inbox-stage.ts'

// Messages of a channel whose plugin is removed and comes again.

it('a message whose channel was removed is answered as soon as the channel is back, without a failed attempt', async () => {
  const platform = new ChatPlatform()
  platform.install()
  await using test = await startPlugin({
    plugin: new URL('./test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'channels'],
    config: {
      channels: { test_chat: { agent_name: 'helper', allowed_users: ['ada'], rate_limit_per_user: 0 } },
      plugins: { drain_ms: 20 },
    },
  })
  await test.spawn('helper')
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  vi.spyOn(test.model, 'complete').mockImplementationOnce(async function* () {
    asked.resolve()
    await answered.promise
    yield { type: 'text', delta: 'first' }
    yield { type: 'end', stop: 'done', usage: { input: 1, output: 1 } }
  })
  test.model.answer('second')
  await platform.write('1')
  await asked.promise
  await platform.write('2')
  await test.unload()
  answered.resolve()
  // The second message is tried without an adapter, and waits.
  await eventually(() => expect(test.log.join('\n')).toContain('the channel is not loaded'))
  // What was received is shown, though nothing knows the channel now; names that nobody ever had are unknown still.
  const { body } = await test.request('GET', '/api/channels/test_chat/inbox?state=pending')
  expect(body).toMatchObject({ messages: [{ text: '2', account_id: 'default' }], total: 1 })
  expect((await test.request('GET', '/api/channels/test_chat/outbox')).status).toBe(200)
  expect((await test.request('GET', '/api/channels/text_chat/inbox')).status).toBe(404)
  await test.reload()
  expect(await platform.texts(2, 'chat-1')).toEqual(['first', 'second'])
})

it('/help is one message where each line would be one', async () => {
  const platform = new ChatPlatform()
  platform.install({ dialect: 'irc' })
  await using _daemon = await startPlugin({
    plugin: new URL('./test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'channels'],
    config: { channels: { test_chat: { allowed_users: ['ada'] } } },
  })
  await platform.write('/help')
  expect(await platform.texts(1, 'chat-1')).toEqual([expect.stringMatching(/^Write a message .* \| \/new – .*$/)])
})

it('a message that is postponed while its account connects does not wait', async () => {
  const handled: string[] = []
  const begun = Promise.withResolvers<void>()
  const connected = Promise.withResolvers<void>()
  const outcomes: readonly (() => Promise<Handled>)[] = [
    async () => {
      begun.resolve()
      await connected.promise
      return { outcome: 'postponed', reason: 'not connected', afterMs: 30_000, waitsFor: { channel: account.channel } }
    },
    async () => ({ outcome: 'answered', agentId: '', statements: [] }),
  ]
  const { inbox, receive, settle } = startInbox(await openTables(), 'one', [], async ({ message }) => {
    handled.push(message.text)
    return outcomes[handled.length - 1]!()
  })
  await receive('hi')
  await begun.promise
  await inbox.connected(account.channel, account.id)
  connected.resolve()
  await settle()
  expect(handled).toEqual(['hi', 'hi'])
})
