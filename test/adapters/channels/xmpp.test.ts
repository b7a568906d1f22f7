import { xml } from '@xmpp/client'
import { v7 as uuid } from 'uuid'
import { afterAll, expect, it } from 'vitest'
import xmpp from '../../../adapters/channels/xmpp/adapter.ts'
import { testChannel } from '../../contract/channel.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { SharedServer } from '../../support/platforms/server-process.ts'
import { ProsodyPlatform, startProsody } from '../../support/platforms/xmpp.ts'

const prosody = new SharedServer(startProsody)
afterAll(() => prosody[Symbol.asyncDispose]())

testChannel({
  name: 'xmpp on prosody, with stream management',
  load: () => import('../../../adapters/channels/xmpp/adapter.ts'),
  start: async () => ProsodyPlatform.start(await prosody.get()),
})

it('works over STARTTLS and without stream management, in rooms, and reports refused messages', async () => {
  await using platform = await ProsodyPlatform.start(await prosody.get(), { scheme: 'xmpp', streamManagement: false })
  await using test = new TestLink(xmpp, platform.config)
  await using connection = await xmpp.open(test.link)
  await platform.waitForListener()
  const message = (chatId: string, text: string) => ({
    id: uuid(),
    to: { chatId },
    text,
    plainText: text,
    attachments: [],
  })
  await connection.send(message(platform.chats.group ?? '', 'in the room \u0000\uFFFE'))
  const [sent] = await platform.waitForSent(1)
  expect(sent).toMatchObject({ chatId: platform.chats.group, text: 'in the room ' })
  await expect(connection.send(message('nobody@localhost', 'x'))).rejects.toMatchObject({
    reason: 'not_found',
    retry: 'never',
  })
  await expect(connection.send(message('two@a.test two@b.test', 'x'))).rejects.toMatchObject({ retry: 'never' })
  const body = xml('body', {}, 'from the history')
  const delay = xml('delay', { xmlns: 'urn:xmpp:delay', stamp: '2026-01-02T03:04:05Z' })
  await platform.sendStanza(xml('message', { to: platform.chats.group ?? '', type: 'groupchat' }, body, delay))
  await platform.sendStanza(xml('message', { to: 'bot@localhost', type: 'chat' }, xml('body', {}, 'no id')))
  const [only] = await test.waitForReceived(1)
  expect(only).toMatchObject({ text: 'no id', sender: { id: 'ada@localhost', name: 'ada' } })
  await test.waitForSleep()
  const heard = test.heard
  test.wake()
  await expect.poll(() => test.heard).toBeGreaterThan(heard)
  await connection[Symbol.asyncDispose]()
  await expect.poll(() => test.connections).toBe(0)
})
