import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/guilded/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/guilded/decode.ts'
import { Member, Message, Welcome } from '../../../adapters/channels/guilded/wire.ts'
import * as v from 'valibot'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { startFakeGuilded } from '../../support/platforms/guilded.ts'

async function openStage() {
  const fake = await startFakeGuilded()
  const stage = new ChannelStage(adapter, fake)
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const textsOf = (messages: readonly { readonly text: string }[]) => messages.map(({ text }) => text)

describe('the platform that closed', () => {
  it.each([
    {},
    { base_url: 'https://www.guilded.gg/api/v1' },
    { base_url: 'https://GUILDED.gg/api' },
    { base_url: 'https://api.guilded.gg:8443/v1/' },
    { base_url: 'https://guilded.example.org', ws_url: 'wss://www.guilded.gg/websocket/v1' },
  ])('gets no request, as with %o', async (config) => {
    const fake = await startFakeGuilded()
    await using stage = new ChannelStage(adapter, fake, { token: 'gapi_secret', ...config })
    let requests = 0
    Object.assign(stage.test.link, { fetch: () => Promise.reject(new Error(`request ${++requests}`)) })
    for (const run of [() => stage.open(), () => stage.adapter.probe(stage.test.link)])
      expect(await stage.failureOf(run)).toMatchObject({
        retry: 'never',
        message: expect.stringContaining('closed in December 2025'),
      })
    expect(requests).toBe(0)
  })
})

describe('events', () => {
  it('that were missed come again after the last one that was dealt with', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    await it.stage.test.waitForReceived(1)
    await it.fake.disconnect!()
    expect((await it.stage.connection.closed).retry).toBe('later')
    await it.fake.deliver({ text: 'two' })
    await it.stage.reopen()
    expect(textsOf(await it.stage.test.waitForReceived(2))).toEqual(['one', 'two'])
    expect(it.stage.test.deliveries).toBe(2)
    expect(it.fake.cursors).toEqual([undefined, expect.stringMatching(/^event-/)])
  })

  it('of before the first start are history', async () => {
    const fake = await startFakeGuilded()
    await fake.deliver({ text: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await stage.connection[Symbol.asyncDispose]()
    await fake.deliver({ text: 'new' })
    await stage.reopen()
    expect(textsOf(await stage.test.waitForReceived(1))).toEqual(['new'])
  })

  it('that the server no longer has are left, with a warning', async () => {
    await using it = await openStage()
    await it.fake.disconnect!()
    await it.stage.connection.closed
    await it.fake.deliver({ text: 'lost' })
    it.fake.forgetEvents()
    await expect(it.stage.reopen()).rejects.toMatchObject({ retry: 'later', retryAfterSecs: 0 })
    expect(it.stage.test.logged.join('\n')).toContain('no longer has the events')
    await it.stage.reopen()
    await it.fake.deliver({ text: 'after' })
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['after'])
  })

  it('tell the name and the roles of a member, asked for once', async () => {
    await using it = await openStage()
    for (const text of ['one', 'two']) await it.fake.deliver({ text, isGroup: true, mentionsBot: true })
    expect((await it.stage.test.waitForReceived(2))[1]).toMatchObject({
      text: 'two',
      sender: { name: 'Countess', roles: ['7'] },
      chat: { kind: 'group', guildId: 'wlVr3Ggl' },
      mentionsBot: true,
    })
    expect(it.fake.calls.filter((call) => call.includes('/members/'))).toHaveLength(1)
  })

  it('are left out when they cannot be read, and of somebody who left have the id alone', async () => {
    await using it = await openStage()
    it.fake.emit('ChatMessageCreated', { message: { id: 7 } })
    it.fake.emit('ServerMemberJoined', { member: {} })
    const message = { id: 'm', channelId: it.fake.chats.direct, content: 'bye', createdBy: 'gone', createdAt: '' }
    it.fake.emit('ChatMessageCreated', { message })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({
      text: 'bye',
      sender: { id: 'gone', name: 'gone' },
    })
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('that answer the bot are for the bot', async () => {
    await using it = await openStage()
    const { id } = await it.stage.connection.send(it.stage.message('mine', { to: { chatId: it.fake.chats.group! } }))
    await it.fake.deliver({ text: 'why?', isGroup: true, replyTo: id })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({ mentionsBot: true, replyTo: id })
  })

  it.each([
    [{ op: 9, d: { message: 'oops' } }, 'an error of its own'],
    [{ kind: 'unknown' }, ''],
  ])('end the connection with the frame %o', async (frame, reason) => {
    await using it = await openStage()
    it.fake.sendFrame(frame)
    expect(await it.stage.connection.closed).toMatchObject({ retry: 'later', reason: expect.stringContaining(reason) })
  })

  it('are kept coming by pings', async () => {
    await using it = await openStage()
    await it.stage.test.waitForSleep()
    const { heard } = it.stage.test
    it.stage.test.wake()
    await expect.poll(() => it.stage.test.heard).toBeGreaterThan(heard)
  })
})

it.each([
  [-1, 1000],
  [22_500, 22_500],
  [1e300, 60_000],
])('a server that asks for a ping each %d ms gets one each %d', (asked, given) => {
  expect(v.parse(Welcome, { heartbeatIntervalMs: asked }).heartbeatIntervalMs).toBe(given)
})

it('nobody is notified', async () => {
  await using it = await openStage()
  const text = '@everyone @here <@Ann6Ada1> 1 < 2'
  const sent = await it.stage.connection.send(it.stage.message(text))
  await it.stage.connection.edit!(sent, it.stage.message(text))
  expect(it.fake.sent[0]?.text.replaceAll('\u200b', '')).toBe(text)
  expect(it.fake.violations).toEqual([])
})

describe('messages', () => {
  const bot = { id: 'BOT', name: 'Helper', type: 'bot' }
  const member = v.parse(Member, { user: { id: 'U', name: 'Ada' } })
  const read = (more: Partial<Parameters<typeof decodeMessage>[1]> = {}) =>
    parsed(Message, (message) => decodeMessage(message, { bot, member, ignoreBots: true, ...more }))
  const base = {
    id: '1',
    serverId: 'S',
    channelId: 'C',
    content: 'hello',
    createdAt: '2026-11-20T12:00:00Z',
    createdBy: 'U',
  }
  const mentions = { users: [{ id: 'BOT' }] }

  it.each([
    ['plain', {}, { text: 'hello', mentionsBot: false, sender: { id: 'U', name: 'Ada' } }],
    ['with a mention', { content: '<@BOT>, hi', mentions }, { text: 'hi', mentionsBot: true }],
    ['with a mention by name', { content: '@Helper hi', mentions }, { text: 'hi', mentionsBot: true }],
    ['with the mere name', { content: '@Helper hi' }, { text: '@Helper hi', mentionsBot: false }],
    ['of the bot', { createdBy: 'BOT' }, undefined],
    ['of a webhook', { createdByWebhookId: 'W' }, undefined],
    ['of the server', { type: 'system' }, undefined],
    ['without a text', { content: null }, undefined],
  ])('one %s', (_, more, expected) => {
    const message = read()({ ...base, ...more })
    if (expected === undefined) expect(message).toBeUndefined()
    else expect(message).toMatchObject(expected)
  })

  it('names with direction marks stay as they are', () => {
    const marked = v.parse(Member, { user: { id: 'U', name: '\u202eadA' } })
    expect(read({ member: marked })(base)?.sender.name).toBe('\u202eadA')
  })

  testHostileInput('guilded', { ...base, type: 'default', replyMessageIds: ['2'], mentions }, read())
})
