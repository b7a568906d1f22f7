import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/rocketchat/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/rocketchat/decode.ts'
import { reactionName } from '../../../adapters/channels/rocketchat/emoji.ts'
import { findError } from '../../../adapters/channels/rocketchat/errors.ts'
import { Message } from '../../../adapters/channels/rocketchat/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { DOCUMENT, PICTURE } from '../../contract/channel-checks/check.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { startFakeRocketChat } from '../../support/platforms/rocketchat.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await startFakeRocketChat()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const group = 'GENERAL'

describe('rocketchat', () => {
  it('an answer in a thread that the bot began is for the bot, and one in another thread is not', async () => {
    await using it = await openStage()
    const { id } = await it.stage.connection.send(it.stage.message('news', { to: { chatId: group } }))
    await it.fake.deliver({ text: 'there', threadId: id, isGroup: true })
    await it.fake.deliver({ text: 'elsewhere', threadId: it.fake.chats.thread ?? '', isGroup: true })
    const received = await it.stage.test.waitForReceived(2)
    expect(received.map(({ text, mentionsBot }) => [text, mentionsBot])).toEqual([
      ['there', true],
      ['elsewhere', false],
    ])
    expect(received[0]).toMatchObject({ chat: { title: 'General' }, sender: { name: 'Ada', handle: '@ada' } })
  })

  it('a direct message of several people is a group, and so is a room that is new', async () => {
    await using it = await openStage()
    it.fake.addRoom({ _id: 'three', t: 'd', usersCount: 3 })
    it.fake.addRoom({ _id: 'two', t: 'd', usersCount: 2 })
    it.fake.addRoom({ _id: 'new', t: 'p', name: 'news' })
    for (const rid of ['three', 'two', 'new', 'three']) it.fake.write({ rid, msg: rid })
    const received = await it.stage.test.waitForReceived(4)
    expect(received.map(({ chat }) => chat.kind)).toEqual(['group', 'direct', 'group', 'group'])
    expect(it.fake.requests.filter((route) => route === 'GET rooms.info')).toHaveLength(2)
  })

  it('reads the rooms of the configuration only, and every direct message', async () => {
    await using it = await openStage({ rooms: ['other'] })
    it.fake.addRoom({ _id: 'x', t: 'c', name: 'other' })
    await it.fake.deliver({ text: 'not here', isGroup: true })
    it.fake.write({ rid: 'x', msg: 'here' })
    await it.fake.deliver({ text: 'direct' })
    expect((await it.stage.test.waitForReceived(2)).map(({ text }) => text)).toEqual(['here', 'direct'])
  })

  it('leaves out notices, encrypted messages, integrations, rooms the bot is not in, and what cannot be read', async () => {
    await using it = await openStage()
    for (const more of [
      { t: 'uj' },
      { t: 'e2e' },
      { bot: { i: 'x' } },
      { place: { roomParticipant: false } },
      { u: {} },
    ])
      it.fake.write({ rid: group, msg: 'no', ...more })
    await it.fake.deliver({ text: 'yes' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['yes'])
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('reads no file outside of the uploads', async () => {
    await using it = await openStage()
    const unused = new Response('secret')
    it.stage.test.nextAnswer = unused
    for (const reference of [
      { file: '..', name: 'home' },
      { file: '.', name: 'home' },
      { file: 'a', name: '..' },
    ])
      await expect(
        (async () => it.stage.connection.readAttachment?.(reference, AbortSignal.timeout(1000)))(),
      ).rejects.toThrow()
    expect(it.stage.test.nextAnswer).toBe(unused)
  })

  it('what an agent writes calls not everybody', async () => {
    await using it = await openStage()
    const { id } = await it.stage.connection.send(it.stage.message('@all and @allan'))
    expect(it.fake.sent[0]?.text).toBe('@\u200Ball and @allan')
    await it.stage.connection.edit?.({ id }, it.stage.message('@HERE'))
    expect(it.fake.sent[0]?.text).toBe('@\u200BHERE')
  })

  it('an old message that somebody reacts to is no new one', async () => {
    const fake = await startFakeRocketChat()
    const old = fake.write({ rid: group, msg: 'old', ts: new Date(1_600_000_000_000) })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    fake.touch(old._id)
    await fake.deliver({ text: 'new' })
    expect((await stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['new'])
  })

  it('a message from the future does not hide those that follow, nor those from while it was away', async () => {
    await using it = await openStage()
    it.fake.write({ rid: group, msg: 'ahead', ts: new Date(9_999_999_999_999) })
    await it.fake.deliver({ text: 'now' })
    await it.stage.test.waitForReceived(2)
    await it.fake.disconnect?.()
    await it.fake.deliver({ text: 'later' })
    await it.stage.reopen()
    expect((await it.stage.test.waitForReceived(3)).map(({ text }) => text)).toEqual(['ahead', 'now', 'later'])
  })

  it('reads what was written and edited in every room while it was away, threads included, and goes on after a limit', async () => {
    const fake = await startFakeRocketChat()
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    const early = await fake.deliver({ text: 'early' })
    await stage.test.waitForReceived(1)
    await fake.disconnect?.()
    await fake.deliver({ text: 'in a thread', threadId: fake.chats.thread ?? '' })
    await fake.deliver({ text: 'direct' })
    await fake.deliver({ text: 'edited', editOf: early })
    await fake.deliver({ text: 'last', isGroup: true })
    fake.limitNextSync()
    expect(await stage.failureOf(() => stage.reopen())).toMatchObject({ retry: 'later' })
    await stage.reopen()
    const received = await stage.test.waitForReceived(5)
    expect(received.map(({ text }) => text).toSorted()).toEqual(['direct', 'early', 'edited', 'in a thread', 'last'])
    expect(received.find(({ text }) => text === 'edited')).toMatchObject({ id: early, isEdit: true })
  })

  it('a room that the bot was removed from meanwhile does not end the account', async () => {
    await using it = await openStage()
    await it.fake.disconnect?.()
    await it.fake.deliver({ text: 'closed', isGroup: true })
    await it.fake.deliver({ text: 'direct' })
    it.fake.closed.add(group)
    await it.stage.reopen()
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['direct'])
  })

  it('a room that was read before a limit is not read again, and older messages of the next room are not lost', async () => {
    const fake = await startFakeRocketChat()
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.disconnect?.()
    await fake.deliver({ text: 'older', isGroup: true })
    await fake.deliver({ text: 'newer' })
    const { receive } = stage.test.link
    stage.test.renew()
    // The list of the second room is refused.
    Object.assign(stage.test.link, {
      receive: async (message: Parameters<typeof receive>[0]) => {
        fake.limitNextSync()
        await receive(message)
      },
    })
    expect(await stage.failureOf(() => stage.open())).toMatchObject({ retry: 'later' })
    stage.test.deliveries = 0
    await stage.reopen()
    expect((await stage.test.waitForReceived(2)).map(({ text }) => text)).toEqual(['newer', 'older'])
    expect(stage.test.deliveries).toBe(1)
  })

  it('signs in before it subscribes, to the messages of all its rooms', async () => {
    await using it = await openStage()
    expect(it.fake.frames).toEqual([
      { msg: 'connect', version: '1', support: ['1'] },
      { msg: 'method', id: 'login', method: 'login', params: [{ resume: it.fake.config['token'] }] },
      { msg: 'sub', id: 'messages', name: 'stream-room-messages', params: ['__my_messages__', false] },
    ])
  })

  it('answers the ping of the server at once, also while a message is stored', async () => {
    await using it = await openStage()
    const stored = Promise.withResolvers<void>()
    Object.assign(it.stage.test.link, { receive: () => stored.promise })
    await it.fake.deliver({ text: 'slow' })
    it.fake.sendFrame({ msg: 'ping', id: 'p1' })
    await expect.poll(() => it.fake.frames.at(-1)).toEqual({ msg: 'pong', id: 'p1' })
    stored.resolve()
  })

  it('the token of another user is refused', async () => {
    const fake = await startFakeRocketChat()
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, user_id: 'somebodyelse' })
    expect(await stage.failureOf(() => stage.open())).toMatchObject({ reason: 'auth', retry: 'never' })
  })

  it('a token that the WebSocket refuses is auth, without the token in the reason', async () => {
    const fake = await startFakeRocketChat()
    fake.refuseLogins()
    await using stage = new ChannelStage(adapter, fake)
    const error = await stage.failureOf(() => stage.open())
    expect(error).toMatchObject({ reason: 'auth', retry: 'never' })
    expect(String(error)).not.toContain(fake.secrets[0])
  })

  it('puts files into messages of their own, in the thread, and sends none twice after a failure', async () => {
    await using it = await openStage()
    const to = { chatId: group, threadId: it.fake.chats.thread ?? '' }
    const failing = { ...attachmentOf(DOCUMENT), bytes: () => Promise.reject(new Error('gone')) }
    const message = it.stage.message('look', { to, attachments: [attachmentOf(PICTURE), failing] })
    await expect(it.stage.connection.send(message)).rejects.toThrow('gone')
    const attachments = [attachmentOf(PICTURE), attachmentOf(DOCUMENT)]
    await it.stage.connection.send({ ...message, attachments })
    const sent = await it.fake.waitForSent(3)
    expect(sent.map(({ text, threadId, files }) => [text, threadId, files[0]?.name])).toEqual([
      ['look', it.fake.chats.thread, undefined],
      ['', it.fake.chats.thread, 'dot.png'],
      ['', it.fake.chats.thread, 'notes ä.txt'],
    ])
  })

  it('a message with the id of the bot that another user has is not taken for its own', async () => {
    await using it = await openStage()
    const message = it.stage.message('hello')
    it.fake.write({ _id: message.id, rid: group, msg: 'squatted' })
    await expect(it.stage.connection.send(message)).rejects.toThrow('starred')
  })

  it('a failure with status 200 is one, and a limit is told by its text', () => {
    const answer = (body: object, status = 200, header: string | undefined = undefined) =>
      findError({ status, ok: status === 200, body, header: () => header }, 1000)
    expect(answer({ success: false, error: 'x' })).toEqual({ message: 'x', reason: 'invalid_request' })
    expect(answer({ success: true })).toBeUndefined()
    expect(answer({ status: 'error', message: 'y' })).toMatchObject({ message: 'y' })
    const limit = { success: false, error: 'slow down [error-too-many-requests]' }
    expect(answer(limit, 400, '31000')).toMatchObject({ reason: 'rate_limit', retryAfterSecs: 30 })
  })

  it('gives reactions by name', () => {
    expect([reactionName('✅'), reactionName('eyes'), reactionName(':eyes:')]).toEqual([
      ':white_check_mark:',
      ':eyes:',
      ':eyes:',
    ])
    expect(() => reactionName('🦑')).toThrow('not known')
  })

  it('leaves out the smaller copy of a picture', () => {
    const files = [
      { _id: '1', name: 'a.png', type: 'image/png' },
      { _id: '2', name: 'thumb-a.png', type: 'image/png' },
      { _id: '3', name: 'thumb-b.png' },
    ]
    const read = decodeMessage(v({ files }), context)
    expect(read?.attachments.map(({ name }) => name)).toEqual(['a.png', 'thumb-b.png'])
  })

  it('a name with signs that change the direction of text stays the name, beside the id', () => {
    expect(decodeMessage(v({ u: { _id: 'x', username: 'ada', name: 'A\u202eda' } }), context)?.sender).toEqual({
      id: 'x',
      name: 'A\u202eda',
      handle: '@ada',
    })
  })
})

const message = {
  _id: 'm1',
  rid: 'GENERAL',
  msg: '@svc hi',
  ts: { $date: 1_763_640_000_000 },
  u: { _id: 'u1', username: 'ada', name: 'Ada' },
  tmid: 't1',
  editedAt: '2026-11-20T12:00:00.000Z',
  alias: 'Ada L.',
  mentions: [{ _id: 'b1' }],
  files: [{ _id: 'f1', name: 'a.png', type: 'image/png', size: 1 }],
}
const context = { bot: { _id: 'b1', username: 'svc' }, ignoreBots: true, room: { t: 'c', name: 'general' } }
const v = (more: object): Message => ({ ...message, ts: 0, editedAt: null, alias: null, ...more }) as Message

testHostileInput(
  'rocketchat',
  message,
  parsed(Message, (read) => decodeMessage(read, context)),
)
