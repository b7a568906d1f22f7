import { parse } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import { v7 as uuid } from 'uuid'
import { expect, it } from 'vitest'
import keybase from '../../../adapters/channels/keybase/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/keybase/decode.ts'
import { Message } from '../../../adapters/channels/keybase/wire.ts'
import { findFileOnly } from '../../../core/config/find-file-only.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { ADA, BOT, DIRECT, FakeKeybase, GROUP, PAPER_KEY } from '../../support/platforms/keybase.ts'
import { TestLink } from '../../support/platforms/link.ts'

const message = (more: Partial<OutboundMessage> = {}): OutboundMessage => ({
  id: uuid(),
  to: { chatId: DIRECT },
  text: 'hello',
  plainText: 'hello',
  attachments: [],
  ...more,
})
const text = (body: string, more: object = {}) => ({ type: 'text', text: { body, ...more } })
const acme = { conversation_id: GROUP, channel: { name: 'acme', members_type: 'team', topic_name: 'general' } }

it('gives the paper key to the standard input of the program, and ends all that it started', async () => {
  await using platform = await FakeKeybase.start()
  await using test = new TestLink(keybase, platform.config)
  const connection = await keybase.open(test.link)
  expect(platform.violations).toEqual([])
  expect(platform.started.map((args) => args.slice(2).join(' ')).toSorted()).toEqual([
    '--enable-bot-lite-mode service',
    '--no-auto-fork chat api-listen',
    `--no-auto-fork oneshot --username ${BOT}`,
    '--no-auto-fork status --json',
    '--no-auto-fork status --json',
    '--no-auto-fork status --json',
  ])
  expect(test.connections).toBe(2)
  await connection[Symbol.asyncDispose]()
  await expect.poll(() => test.connections).toBe(0)
})

it('uses the service that runs in its folder, and needs no paper key then', async () => {
  await using platform = await FakeKeybase.start()
  await using first = new TestLink(keybase, platform.config)
  await using connection = await keybase.open(first.link)
  await using second = new TestLink(keybase, { ...platform.config, token: undefined })
  expect(await keybase.probe(second.link)).toEqual({ account: BOT })
  await connection.send(message())
  await using other = new TestLink(keybase, { ...platform.config, token: undefined, username: 'somebody' })
  await expect(keybase.open(other.link)).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
})

it('reads teams, groups, files and replies, and leaves out what is no message', async () => {
  await using platform = await FakeKeybase.start()
  await using test = new TestLink(keybase, { ...platform.config, teams: ['acme'] })
  await using connection = await keybase.open(test.link)
  const { id } = await connection.send(message({ to: { chatId: GROUP } }))
  const own = Number(id.split(':')[1])
  const tell = (msg: object) => platform.printLine(JSON.stringify({ type: 'chat', source: 'remote', msg }))
  const group = { channel: { name: 'ada,grace,svcbot', members_type: 'impteamnative' }, conversation_id: GROUP }
  platform.printLine('')
  platform.printLine('no json')
  platform.printLine(JSON.stringify({ type: 'chat', error: 'cannot be decrypted' }))
  platform.printLine(JSON.stringify({ type: 'chat_conv', conv: {} }))
  tell({ id: 'x' })
  tell(platform.message({ type: 'reaction', reaction: { m: 1, b: ':+1:' } }))
  tell(platform.message(text('for developers'), { channel: { name: 'ada,svcbot', topic_type: 'dev' } }))
  tell(platform.message(text('elsewhere'), { ...acme, channel: { ...acme.channel, name: 'other' } }))
  tell(platform.message(text('gone'), { is_ephemeral_expired: true }))
  tell(platform.message(text('@svcbot2 and others'), acme))
  tell(platform.message(text('about that', { replyTo: own }), acme))
  tell(platform.message({ type: 'attachment', attachment: { object: { filename: 'a.png', title: 'Sunset' } } }, group))
  tell(platform.message(text('\u202eolleh'), { sender: { uid: 'u', username: '\u202eadA' } }))
  const [team, reply, file, last] = await test.waitForReceived(4)
  expect(team).toMatchObject({
    text: '@svcbot2 and others',
    mentionsBot: false,
    chat: { id: GROUP, kind: 'group', title: 'acme#general', guildId: 'acme' },
    sender: { id: ADA.uid, name: 'ada', handle: 'ada' },
  })
  expect(reply).toMatchObject({ mentionsBot: true, replyTo: id })
  expect(file).toMatchObject({ text: 'Sunset [file: a.png]', chat: { kind: 'group', title: 'ada,grace,svcbot' } })
  expect(last).toMatchObject({ text: '\u202eolleh', sender: { name: '\u202eadA' } })
  expect(test.logged.filter((line) => line.includes('Keybase'))).toHaveLength(3)
})

it('reads no history at first, and afterwards what it missed in order', async () => {
  await using platform = await FakeKeybase.start()
  await using test = new TestLink(keybase, platform.config)
  await platform.deliver({ text: 'long before' })
  test.state.set('last', '')
  const first = await keybase.open(test.link)
  await first[Symbol.asyncDispose]()
  test.renew()
  await platform.deliver({ text: 'in the group', isGroup: true })
  await platform.deliver({ text: 'in the chat' })
  await using _ = await keybase.open(test.link)
  const received = await test.waitForReceived(2)
  expect(received.map((one) => one.text)).toEqual(['in the group', 'in the chat'])
})

it('notifies nobody who is not meant, and takes only ids of its own', async () => {
  await using platform = await FakeKeybase.start()
  await using test = new TestLink(keybase, platform.config)
  await using connection = await keybase.open(test.link)
  await connection.send(message({ text: '@here @channel @ada x@everyone.org' }))
  expect(platform.sent[0]?.text).toBe('@\u200bhere @\u200bchannel @ada x@\u200beveryone.org')
  await expect(connection.react?.({ chatId: DIRECT }, 'none', '👍')).rejects.toMatchObject({ retry: 'never' })
  platform.fail({ kind: 'permanent' })
  await expect(connection.send(message())).rejects.toMatchObject({ message: expect.stringContaining('blocked by ada') })
})

it('ends when messages come faster than they are taken', async () => {
  await using platform = await FakeKeybase.start()
  await using test = new TestLink(keybase, platform.config)
  await using connection = await keybase.open(test.link)
  platform.printLine('x'.repeat(5_000_000))
  expect(await connection.closed).toMatchObject({ retry: 'later', reason: expect.stringContaining('faster') })
})

it('says that the program is missing, and waits for a service that is slow', async () => {
  await using platform = await FakeKeybase.start()
  await using missing = new TestLink(keybase, { ...platform.config, program: '/no/such/keybase' })
  await expect(keybase.open(missing.link)).rejects.toThrow('"/no/such/keybase" is not installed')
  await using wrong = new TestLink(keybase, { ...platform.config, token: 'wrong paper key' })
  const failure = await keybase.open(wrong.link).catch((error: unknown) => error)
  expect(failure).toMatchObject({ reason: 'auth', retry: 'never' })
  expect(String(failure)).not.toContain('wrong paper key')
  await expect.poll(() => wrong.connections).toBe(0)
})

it('lets only the configuration file name the program and its folder', () => {
  const config = { username: BOT, token: PAPER_KEY, folder: '/var/lib/keybase', program: '/bin/sh' }
  expect(parse(keybase.config, config)).toMatchObject({ username: BOT })
  for (const key of ['folder', 'program']) expect(findFileOnly(keybase.config, [key], '/bin/sh')?.path).toEqual([key])
  for (const folder of ['relative', '/var/../etc'])
    expect(() => parse(keybase.config, { ...config, folder })).toThrow('an absolute path')
})

testHostileInput(
  'keybase',
  {
    id: 4,
    conversation_id: DIRECT,
    channel: { name: 'ada,svcbot', members_type: 'team', topic_type: 'chat', topic_name: 'general' },
    sender: { uid: 'u', username: 'ada' },
    sent_at_ms: 1_700_000_000_000,
    content: { ...text('@svcbot hello', { replyTo: 3 }), edit: { messageID: 2, body: 'x' } },
    at_mention_usernames: [BOT],
  },
  parsed(Message, (one) => decodeMessage(one, { username: BOT, isOwn: () => false })),
)
