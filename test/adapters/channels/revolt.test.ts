import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/revolt/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/revolt/decode.ts'
import { lowestId, timeOf } from '../../../adapters/channels/revolt/ulid.ts'
import { Channel, Message } from '../../../adapters/channels/revolt/wire.ts'
import * as v from 'valibot'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { PICTURE } from '../../contract/channel-checks/check.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { startFakeRevolt } from '../../support/platforms/revolt.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await startFakeRevolt()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const textsOf = (messages: readonly { readonly text: string }[]) => messages.map(({ text }) => text)

describe('what is received', () => {
  it('has its server, its names and its roles', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'hello', isGroup: true, mentionsBot: true })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({
      text: 'hello',
      chat: { id: it.fake.chats.group, kind: 'group', title: 'General', guildId: '01HZZZZZZZZZZZZZZZZZSERVER' },
      sender: { name: 'Ada', handle: '@ada#1815', roles: ['01HROLE'] },
      sentAt: '2025-11-20T12:00:00.001Z',
    })
  })

  it('is asked for who wrote it, when that is not told', async () => {
    await using it = await openStage()
    it.fake.sendEvent({
      type: 'Message',
      _id: '01KAG4HV000000000000000000',
      channel: it.fake.chats.direct,
      author: it.fake.person,
      content: 'who am I?',
    })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({
      sender: { name: 'Ada' },
      chat: { kind: 'direct' },
    })
  })

  it('is an answer to the bot when it answers one of its messages', async () => {
    await using it = await openStage()
    const { id } = await it.stage.connection.send(it.stage.message('mine', { to: { chatId: it.fake.chats.group! } }))
    await it.fake.deliver({ text: 'why?', isGroup: true, replyTo: id })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({ text: 'why?', mentionsBot: true, replyTo: id })
  })

  it('comes in bulk, too, and leaves out what cannot be read', async () => {
    await using it = await openStage()
    const base = { type: 'Message', channel: it.fake.chats.direct, author: it.fake.person }
    it.fake.sendEvent({
      type: 'Bulk',
      v: [
        { ...base, _id: '01KAG4HV000000000000000001', content: 'one' },
        { ...base, _id: 7 },
        { type: 'MessageUpdate', id: 'x' },
        { type: 'Bees' },
        { ...base, _id: '01KAG4HV000000000000000002', content: 'two' },
      ],
    })
    expect(textsOf(await it.stage.test.waitForReceived(2))).toEqual(['one', 'two'])
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('is no edit when a preview is added, or when the bot edits', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'first' })
    const channel = it.fake.chats.direct
    it.fake.sendEvent({ type: 'MessageUpdate', id, channel, data: { embeds: [] } })
    const sent = await it.stage.connection.send(it.stage.message('draft'))
    await it.stage.connection.edit!(sent, it.stage.message('final'))
    await it.fake.deliver({ text: 'last' })
    expect(textsOf(await it.stage.test.waitForReceived(2))).toEqual(['first', 'last'])
  })

  it('is of the allowed servers only, and of every direct message', async () => {
    await using it = await openStage({ allowed_servers: ['01HOTHER'] })
    await it.fake.deliver({ text: 'not here', isGroup: true, mentionsBot: true })
    await it.fake.deliver({ text: 'direct' })
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['direct'])
  })

  it('is of people: notices and webhooks are left unread', async () => {
    await using it = await openStage()
    it.fake.post({ author: '00000000000000000000000000', system: { type: 'user_joined', id: 'x' } })
    it.fake.post({ author: '01HHOOK', webhook: { name: 'svc' }, content: 'automatic' })
    await it.fake.deliver({ text: 'of a person' })
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['of a person'])
  })
})

describe('what was missed', () => {
  it('is read in all channels, page by page, and nothing from before the first start', async () => {
    const fake = await startFakeRevolt()
    await fake.deliver({ text: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.disconnect!()
    for (let n = 0; n < 250; n++) await fake.deliver({ text: `m${n}`, isGroup: true })
    await fake.deliver({ text: 'direct' })
    await stage.reopen()
    const received = textsOf(await stage.test.waitForReceived(251))
    expect(received.filter((text) => text !== 'direct')).toEqual(Array.from({ length: 250 }, (_, n) => `m${n}`))
    expect(received).toContain('direct')
    expect(fake.violations).toEqual([])
  })

  it('is read up to catch_up_messages, and the rest is told', async () => {
    const fake = await startFakeRevolt()
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, catch_up_messages: 120 })
    await stage.open()
    await fake.disconnect!()
    for (let n = 1; n <= 150; n++) await fake.deliver({ text: `m${n}`, isGroup: true })
    const connection = await stage.reopen()
    const received = textsOf(await stage.test.waitForReceived(120))
    expect([received[0], received.at(-1)]).toEqual(['m1', 'm120'])
    await fake.deliver({ text: 'now', isGroup: true })
    expect(textsOf(await stage.test.waitForReceived(121)).at(-1)).toBe('now')
    const warning = /oldest 120 were read, and those after 20\d\d-\S+ were not: catch_up_messages/
    expect(connection.warnings?.()).toEqual([expect.stringMatching(warning)])
    expect(stage.test.logged.join('\n')).toMatch(warning)
  })

  it('is read again in every channel when one of them could not be stored', async () => {
    const fake = await startFakeRevolt()
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.disconnect!()
    await fake.deliver({ text: 'group', isGroup: true })
    fake.passTime(60_000)
    await fake.deliver({ text: 'direct' })
    // The first channel is read, and then the disk is full.
    const { receive } = stage.test.link
    stage.test.renew()
    let calls = 0
    Object.assign(stage.test.link, {
      receive: async (message: Parameters<typeof receive>[0]) => {
        if (++calls > 1) throw new Error('the disk is full')
        await receive(message)
      },
    })
    const connection = await stage.open()
    expect(await connection.closed).toMatchObject({ retry: 'later', reason: 'the disk is full' })
    await stage.reopen()
    expect(textsOf(await stage.test.waitForReceived(2))).toEqual(['direct', 'group'])
  })

  it('is read while the connection is open, however long that takes, and before what is new', async () => {
    await using it = await openStage()
    await it.fake.disconnect!()
    await it.fake.deliver({ text: 'missed' })
    const shown = Promise.withResolvers<void>()
    it.fake.waitBeforeLists(shown.promise)
    await it.stage.reopen()
    await it.fake.deliver({ text: 'new' })
    shown.resolve()
    expect(textsOf(await it.stage.test.waitForReceived(2))).toEqual(['missed', 'new'])
  })

  it('is left out where the bot may not read the history', async () => {
    await using it = await openStage()
    await it.fake.disconnect!()
    it.fake.closeHistory(it.fake.chats.group!)
    await it.fake.deliver({ text: 'hidden', isGroup: true })
    await it.fake.deliver({ text: 'direct' })
    await it.stage.reopen()
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['direct'])
  })
})

describe('what is sent', () => {
  it('appears once when the answer was lost, and is found by its key', async () => {
    await using it = await openStage()
    const message = it.stage.message('once')
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(message)).rejects.toMatchObject({ retry: 'later' })
    const sent = await it.stage.connection.send(message)
    expect(sent).toEqual({ id: it.fake.sent[0]?.id, wasSentBefore: true })
    expect(it.fake.sent).toHaveLength(1)
  })

  it('is sent under another key when the first was used up by a failure', async () => {
    await using it = await openStage()
    const message = it.stage.message('late')
    it.fake.fail({ kind: 'server_error' })
    await expect(it.stage.connection.send(message)).rejects.toMatchObject({ retry: 'later' })
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(message)).rejects.toMatchObject({ retry: 'later' })
    expect((await it.stage.connection.send(message)).id).toBe(it.fake.sent[0]?.id)
    expect(textsOf(it.fake.sent)).toEqual(['late'])
  })

  it('notifies nobody', async () => {
    await using it = await openStage()
    const text = '@everyone @online <@01HZZZZZZZZZZZZZZZZZZZZADA> <%01HROLE> 1 < 2'
    const sent = await it.stage.connection.send(it.stage.message(text))
    await it.stage.connection.edit!(sent, it.stage.message(text))
    expect(it.fake.sent[0]?.text.replaceAll('\u200b', '')).toBe(text)
    expect(it.fake.sent[0]?.text).not.toMatch(/@everyone|@online|<[@%]/)
    expect(it.fake.violations).toEqual([])
  })

  it('has room for five files in a message', async () => {
    await using it = await openStage()
    const attachments = Array.from({ length: 7 }, () => attachmentOf(PICTURE))
    const { id } = await it.stage.connection.send(it.stage.message('seven', { attachments }))
    expect(it.fake.sent.map(({ text, files }) => [text, files.length])).toEqual([
      ['seven', 5],
      ['', 2],
    ])
    expect(id).toBe(it.fake.sent[0]?.id)
  })

  it.each([
    [429, { retry_after: 1500 }, { reason: 'rate_limit', retryAfterSecs: 1.5 }],
    [429, { type: 'InSlowmode', retry_after: 30 }, { reason: 'rate_limit', retryAfterSecs: 30 }],
    [403, { type: 'MissingPermission', permission: 'SendMessage' }, { retry: 'never', message: /SendMessage/ }],
    [422, { type: 'PayloadTooLarge' }, { reason: 'invalid_request', retry: 'never' }],
    [502, '<html>', { reason: 'server_error', retry: 'later' }],
  ])('is refused with %i and %o', async (status, body, expected) => {
    await using it = await openStage()
    it.fake.answerNext(status, body)
    const failure = await it.stage.failureOf(() => it.stage.connection.send(it.stage.message('x')))
    const { message = '', ...rest } = expected as { message?: RegExp | '' }
    expect(failure).toMatchObject(rest)
    expect(String(failure)).toMatch(message)
  })
})

describe('the connection', () => {
  it('pings, and ends when no answer comes', async () => {
    await using it = await openStage()
    await it.stage.test.waitForSleep()
    const heard = it.stage.test.heard
    it.stage.test.wake()
    await expect.poll(() => it.stage.test.heard).toBeGreaterThan(heard)
    it.fake.ignorePings()
    it.stage.test.wake()
    await expect.poll(() => it.fake.frames).toEqual(['Authenticate', 'Ping', 'Ping'])
    it.stage.test.wake()
    expect(await it.stage.connection.closed).toEqual({ retry: 'later', reason: 'revolt did not answer a ping' })
  })

  it.each([
    [{ type: 'Logout' }, 'never', 'not valid any more'],
    [{ type: 'Error', data: { type: 'InvalidSession' } }, 'never', 'refused the token'],
    [{ type: 'Error', error: 'InternalError' }, 'later', 'InternalError'],
    [{ kind: 'unknown' }, 'later', ''],
  ])('ends on %o', async (event, retry, reason) => {
    await using it = await openStage()
    it.fake.sendEvent(event)
    expect(await it.stage.connection.closed).toMatchObject({ retry, reason: expect.stringContaining(reason) })
  })

  it('sends its token to no address that is not encrypted, when the API is', async () => {
    const fake = await startFakeRevolt()
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, base_url: 'https://api.example.test' })
    const { fetch } = stage.test.link
    const { host } = new URL(String(fake.config['base_url']))
    Object.assign(stage.test.link, {
      fetch: (url: string, { check: _check, ...request }: NonNullable<Parameters<typeof fetch>[1]>) =>
        fetch(url.replace('https://api.example.test', `http://${host}`), request),
    })
    await expect(stage.open()).rejects.toThrow('an address that the token is not sent to')
    expect(fake.frames).toEqual([])
    for (const autumn of ['http://evil.test', 'ftp://evil.test', '']) {
      fake.addresses = { ws: 'wss://events.example.test', autumn }
      await expect(stage.open()).rejects.toMatchObject({ retry: 'never' })
    }
  })

  it('uses the addresses of the configuration', async () => {
    const fake = await startFakeRevolt()
    const origin = String(fake.config['base_url'])
    fake.addresses = { ws: 'ws://nowhere.test', autumn: 'http://nowhere.test' }
    const config = { ...fake.config, ws_url: `${origin.replace('http', 'ws')}/events`, files_url: `${origin}/autumn/` }
    await using stage = new ChannelStage(adapter, fake, config)
    await stage.open()
    await stage.connection.send(stage.message('x', { attachments: [attachmentOf(PICTURE)] }))
    expect(fake.sent[0]?.files).toHaveLength(1)
  })
})

describe('messages', () => {
  const CHANNEL = v.parse(Channel, { _id: 'C', channel_type: 'Group', name: 'Friends' })
  const read = parsed(Message, (message) =>
    decodeMessage(message, { botId: 'BOT', ignoreBots: true, channel: CHANNEL }),
  )
  const user = { _id: 'U', username: 'ada', discriminator: '0001' }
  const base = { _id: '01KAG4HV00ABCDEFGHJKMNPQRS', channel: 'C', author: 'U', content: 'hello', user }

  it.each([
    ['plain', {}, { text: 'hello', mentionsBot: false, chat: { kind: 'group', title: 'Friends' } }],
    ['with a mention', { content: '<@BOT>, hi', mentions: ['BOT'] }, { text: 'hi', mentionsBot: true }],
    ['with a silent mention', { content: 'hi <@BOT>' }, { text: 'hi', mentionsBot: true }],
    ['of a bot', { user: { ...user, bot: { owner: 'x' } } }, undefined],
    ['of the bot itself', { author: 'BOT' }, undefined],
    ['without a text', { content: null }, undefined],
    ['with direction marks', { user: { ...user, display_name: '\u202eadA' } }, { sender: { name: '\u202eadA' } }],
    ['under a name of the server', { member: { nickname: 'Countess' } }, { sender: { name: 'Countess' } }],
    ['with an id of no time', { _id: 'x' }, { sentAt: '1970-01-01T00:00:00.000Z' }],
  ])('one %s', (_, more, expected) => {
    const message = read({ ...base, ...more })
    if (expected === undefined) expect(message).toBeUndefined()
    else expect(message).toMatchObject(expected)
  })

  it('a webhook has no handle, whatever it calls itself', () => {
    const hook = parsed(Message, (message) => decodeMessage(message, { botId: 'BOT', ignoreBots: false }))
    const message = hook({ ...base, webhook: { name: 'ada' } })
    expect(message?.sender).toEqual({ id: 'U', name: 'ada', isBot: true })
  })

  it.each([0, 1, 1_763_640_000_123, 2 ** 48 - 1])('ids begin with their time, such as %i', (ms) => {
    expect(timeOf(lowestId(ms))).toBe(ms)
    expect(lowestId(ms)).toHaveLength(26)
  })
})

testHostileInput(
  'revolt',
  {
    _id: '01KAG4HV00ABCDEFGHJKMNPQRS',
    channel: 'C',
    author: 'U',
    user: { _id: 'U', username: 'ada', discriminator: '0001', display_name: 'Ada' },
    member: { _id: { user: 'U' }, nickname: 'A', roles: ['R'] },
    content: '<@BOT>, hi <@BOT>',
    attachments: [{ _id: 'F', filename: 'a', content_type: 'a/b; c', size: 1 }],
    mentions: ['BOT'],
    replies: ['M'],
    edited: '2026-11-20T12:00:00Z',
  },
  parsed(Message, (message) => decodeMessage(message, { botId: 'BOT', ignoreBots: true })),
)
