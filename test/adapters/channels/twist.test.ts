import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/twist/adapter.ts'
import { decodeWritten } from '../../../adapters/channels/twist/address.ts'
import { decodeEntry } from '../../../adapters/channels/twist/decode.ts'
import { findError } from '../../../adapters/channels/twist/errors.ts'
import { Entry, Thread } from '../../../adapters/channels/twist/wire.ts'
import type { Conversation } from '../../../adapters/channels/twist/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeTwist } from '../../support/platforms/twist.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeTwist.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const CHANNEL = '6984'

describe('twist', () => {
  it('a new thread is a message with its title, and answers stay in it and tell who asked', async () => {
    await using it = await openStage()
    const thread = it.fake.begin('Ferries', 'When?')
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message).toMatchObject({
      id: `t${thread}`,
      chat: { id: CHANNEL, kind: 'group', title: 'harbour' },
      threadId: String(thread),
      sender: { id: '10073', name: 'Ada', handle: 'ada@twist.test' },
      text: 'Ferries\n\nWhen?',
    })
    const to = { chatId: CHANNEL, threadId: String(thread), replyContext: message?.replyContext ?? {} }
    await it.stage.connection.send(it.stage.message('At six.', { to }))
    expect(it.fake.sent).toMatchObject([{ text: 'At six.', threadId: String(thread) }])
    expect(it.fake.recipients).toEqual([[10_073]])
  })

  it('a thread that is closed to the bot does not end the account, nor hold up the others', async () => {
    await using it = await openStage()
    const thread = it.fake.begin('Secret', 'When?')
    it.fake.closed.add(thread)
    await it.stage.reopen()
    await it.fake.write({ text: 'hi' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['hi'])
  })

  it('what an agent writes calls nobody, neither a person nor a group', async () => {
    await using it = await openStage()
    const to = { chatId: CHANNEL }
    const { id } = await it.stage.connection.send(it.stage.message('[All](twist-group-mention://1)', { to }))
    expect(it.fake.sent[0]?.text).toBe('[All](twist-\u200Bgroup-mention://1)')
    await it.stage.connection.edit?.({ id }, it.stage.message('[Bob](Twist-mention://7)', { to }))
    expect(it.fake.sent[0]?.text).toBe('[Bob](Twist-\u200Bmention://7)')
  })

  it('what answers no thread begins one, in which every comment is for the bot', async () => {
    await using it = await openStage({ thread_title: 'News' })
    const { id } = await it.stage.connection.send(it.stage.message('hello', { to: { chatId: CHANNEL } }))
    await it.fake.write({ text: 'and?', threadId: id.slice(1) })
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message).toMatchObject({ text: 'and?', mentionsBot: true, threadId: id.slice(1) })
    await it.stage.connection.edit?.({ id }, it.stage.message('hello all'))
    expect(it.fake.sent).toMatchObject([{ text: 'hello all' }])
  })

  it('reads a mention of itself, and has those of others and of groups as names', async () => {
    await using it = await openStage()
    const content =
      '[Bob](twist-mention://7), [Helper](twist-group-mention://10001) and [Helper](twist-mention://10001)'
    await it.fake.write({ text: content, isGroup: true })
    await it.fake.write({ text: '[Bob](twist-mention://7) hi', isGroup: true })
    const received = await it.stage.test.waitForReceived(2)
    expect(received.map(({ text, mentionsBot }) => [text, mentionsBot])).toEqual([
      ['@Bob, @Helper and', true],
      ['@Bob hi', false],
    ])
  })

  it('a conversation of more than two people is a group', async () => {
    await using it = await openStage()
    it.fake.addConversation(77, [1, 2, 3])
    await it.fake.write({ text: 'all', conversation: 77 })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({ chat: { id: 'dm:77', kind: 'group' } })
  })

  it('reads the channels of the configuration only, and every conversation', async () => {
    await using it = await openStage({ channels: ['other'] })
    await it.fake.write({ text: 'not here', isGroup: true })
    await it.fake.write({ text: 'direct' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['direct'])
  })

  it('leaves out notices, bots and previews of addresses, and knows people who come later', async () => {
    await using it = await openStage()
    await it.fake.write({ text: 'joined', system: { type: 'X' } })
    it.fake.addUser({ id: 5, name: 'Beep', bot: true, email: '' })
    await it.fake.write({ text: 'beep', from: { id: 5 } })
    it.fake.addUser({ id: 6, name: 'B\u202eob', bot: false, email: 'bob@twist.test' })
    await it.fake.write({ text: 'hi', from: { id: 6 }, attachments: [{ url: 'https://x.test', url_type: 'website' }] })
    const received = await it.stage.test.waitForReceived(1)
    expect(received).toMatchObject([
      { text: 'hi', sender: { name: 'B\u202eob', handle: 'bob@twist.test' }, attachments: [] },
    ])
  })

  it('reads several pages of what came while it was away, in order, and nothing from before the first start', async () => {
    const fake = await FakeTwist.start()
    await fake.write({ text: 'old' }, { isQuiet: true })
    await using stage = new ChannelStage(adapter, fake)
    // It starts an hour later.
    Object.assign(stage.test.link, { now: () => Date.now() + 3_600_000 })
    await stage.open()
    expect(stage.test.received).toEqual([])
    stage.test.state.set('start', '0')
    await stage.connection[Symbol.asyncDispose]()
    for (let index = 0; index < 120; index++) await fake.write({ text: `m${index}` }, { isQuiet: true })
    await stage.reopen()
    const received = await stage.test.waitForReceived(120)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 120 }, (_, index) => `m${index}`))
  })

  it('reads all of a conversation that began while it was away', async () => {
    const fake = await FakeTwist.start()
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    stage.test.state.set('start', '0')
    await stage.connection[Symbol.asyncDispose]()
    for (let index = 0; index < 120; index++) await fake.write({ text: `m${index}` }, { isQuiet: true })
    await stage.reopen()
    const received = await stage.test.waitForReceived(120)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 120 }, (_, index) => `m${index}`))
  })

  it('marks as read what is durable, and then asks for nothing more', async () => {
    await using it = await openStage()
    await it.fake.write({ text: 'hi', isGroup: true })
    await it.stage.test.waitForReceived(1)
    await it.fake.nextQuestion()
    const before = it.fake.requests.filter((request) => !request.endsWith('get_unread')).length
    for (let round = 0; round < 3; round++) await it.fake.nextQuestion()
    expect(it.fake.requests.filter((request) => !request.endsWith('get_unread'))).toHaveLength(before)
    expect(it.fake.violations).toEqual([])
  })

  it('what begins a thread comes once, also where the server does not take the mark', async () => {
    await using it = await openStage()
    it.fake.ignoreMarks()
    it.fake.begin('Ferries', 'When?')
    await it.stage.test.waitForReceived(1)
    for (let round = 0; round < 2; round++) await it.fake.nextQuestion()
    await it.fake.write({ text: 'last' })
    await it.stage.test.waitForReceived(2)
    expect(it.stage.test.deliveries).toBe(2)
  })

  it('a workspace that is not given is the default one, and another one is asked for', async () => {
    const fake = await FakeTwist.start()
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, workspace_id: '1' })
    expect(await stage.failureOf(() => stage.open())).toMatchObject({ reason: 'not_found', retry: 'never' })
  })

  it('reacts to what begins a thread, and to nothing that is no message', async () => {
    await using it = await openStage()
    await it.stage.connection.react?.({ chatId: CHANNEL }, 't32038', '👍')
    expect(it.fake.reactions).toEqual([{ messageId: 't32038', emoji: '👍' }])
    await expect(it.stage.connection.react?.({ chatId: CHANNEL }, '32038', '👍')).rejects.toThrow('No message of Twist')
    expect(() => decodeWritten('c1/2')).toThrow('No message of Twist')
  })

  it('a failure is told by its code: a wrong token is 403, and a reaction that is not supported is 401', () => {
    const answer = (status: number, code: number) =>
      findError({ status, ok: status === 200, body: { error_code: code, error_string: 'x' }, header: () => undefined })
    expect(answer(403, 200)?.reason).toBe('auth')
    expect(answer(403, 109)?.reason).toBeUndefined()
    expect(answer(401, 122)?.reason).toBe('invalid_request')
    expect(answer(200, 20)?.reason).toBe('invalid_request')
  })
})

const written = {
  id: 206_113,
  content: '[Helper](twist-mention://10001) hi',
  creator: 10_073,
  posted_ts: 1_763_640_000,
  attachments: [{ url: 'https://x.test/a.png', file_name: 'a.png', underlying_type: 'image/png', file_size: 1 }],
  system_message: null,
}
const thread: Thread = { ...written, title: 'T', channel_id: 6984 }
const conversation: Conversation = { id: 13_037, user_ids: [10_001, 10_073], title: '' }
const context = {
  bot: { id: 10_001, name: 'Helper' },
  ignoreBots: true,
  sender: { id: 10_073, name: 'Ada', email: 'ada@twist.test', bot: false },
}
const channel = { id: 6984, name: 'harbour' }
testHostileInput(
  'twist, a message',
  { ...written, obj_index: 2 },
  parsed(Entry, (entry) => decodeEntry(entry, { conversation }, context)),
)
testHostileInput(
  'twist, a thread',
  thread,
  parsed(Thread, (read) => decodeEntry(read, { thread: read, channel }, context)),
)
