import { xml } from '@xmpp/client'
import { v7 as uuid } from 'uuid'
import { Refusal } from 'svc/sdk'
import { afterAll, expect, it } from 'vitest'
import xmpp from '../../../adapters/channels/xmpp/adapter.ts'
import { testChannel } from '../../contract/channel.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { SharedServer } from '../../support/platforms/server-process.ts'
import { MAX_FILE_BYTES, ProsodyPlatform, startProsody } from '../../support/platforms/xmpp.ts'

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

it('tells people nothing of why the daemon may not reach the server of files, and the operator all', async () => {
  await using platform = await ProsodyPlatform.start(await prosody.get())
  await using test = new TestLink(xmpp, platform.config)
  const hint = 'Requests to 10.1.2.3 are refused. To permit it, add "10.1.2.3" to [outbound] allow in config.toml'
  Object.assign(test.link, { fetch: () => Promise.reject(new Refusal('forbidden', hint)) })
  await using connection = await xmpp.open(test.link)
  const file = { kind: 'file', name: 'a.txt', mime: 'text/plain', size: 1 } as const
  await connection.send({
    id: uuid(),
    to: { chatId: platform.chats.direct },
    text: 'here it is',
    plainText: 'here it is',
    attachments: [{ ...file, bytes: async () => Buffer.from('a') }],
  })
  const [sent] = await platform.waitForSent(1)
  expect(sent?.text).toBe('here it is\n[a.txt could not be sent]')
  expect(connection.warnings?.()).toEqual([`a.txt could not be sent: ${hint}`])
  expect(test.logged.join('\n')).toContain('[outbound] allow')
})

it('warns of a room that it was removed from', async () => {
  await using platform = await ProsodyPlatform.start(await prosody.get())
  await using test = new TestLink(xmpp, platform.config)
  await using connection = await xmpp.open(test.link)
  await platform.waitForListener()
  expect(connection.warnings?.()).toEqual([])
  // Anybody may send a presence that looks like one of a room.
  const self = xml('x', { xmlns: 'http://jabber.org/protocol/muc#user' }, xml('status', { code: '110' }))
  await platform.sendStanza(xml('presence', { type: 'unavailable', to: platform.config.jid }, self))
  const item = xml('item', { nick: platform.config.nick, role: 'none' }, xml('reason', {}, 'not now'))
  const query = xml('query', { xmlns: 'http://jabber.org/protocol/muc#admin' }, item)
  await platform.sendStanza(xml('iq', { type: 'set', id: 'kick', to: platform.chats.group ?? '' }, query))
  await expect.poll(() => connection.warnings?.()).toEqual([`removed from ${platform.chats.group}: not now`])
})

it('names a file that the server takes not, and announces those of its own server only', async () => {
  await using platform = await ProsodyPlatform.start(await prosody.get())
  await using test = new TestLink(xmpp, platform.config)
  await using connection = await xmpp.open(test.link)
  await platform.waitForListener()
  const bytes = new Uint8Array(MAX_FILE_BYTES + 1)
  const file = { kind: 'file', name: 'big.bin', mime: 'application/octet-stream', size: bytes.length } as const
  await connection.send({
    id: uuid(),
    to: { chatId: platform.chats.direct },
    text: 'here it is',
    plainText: 'here it is',
    attachments: [{ ...file, bytes: () => Promise.resolve(bytes) }],
  })
  const [sent] = await platform.waitForSent(1)
  expect(sent?.text).toBe(`here it is\n[big.bin could not be sent: it is larger than ${MAX_FILE_BYTES} bytes]`)
  expect(connection.warnings?.()).toEqual([expect.stringContaining('bytes that share.localhost takes')])

  const foreign = 'https://elsewhere.example/secret.png'
  const shared = (address: string) => xml('x', { xmlns: 'jabber:x:oob' }, xml('url', {}, address))
  for (const address of [foreign, 'file:///etc/passwd', 'http://localhost.example/a.png'])
    await platform.sendStanza(
      xml('message', { to: 'bot@localhost', type: 'chat' }, xml('body', {}, address), shared(address)),
    )
  const received = await test.waitForReceived(3)
  expect(received.map(({ text, attachments }) => [text, attachments])).toEqual([
    [foreign, []],
    ['file:///etc/passwd', []],
    ['http://localhost.example/a.png', []],
  ])
  const read = connection.readAttachment?.({ url: foreign }, new AbortController().signal)
  await expect(read).rejects.toMatchObject({ code: 'forbidden' })
})
