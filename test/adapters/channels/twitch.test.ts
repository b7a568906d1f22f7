import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/twitch/adapter.ts'
import { TwitchConfig } from '../../../adapters/channels/twitch/config.ts'
import { decodeMessage } from '../../../adapters/channels/twitch/decode.ts'
import { ChatMessage, Notification } from '../../../adapters/channels/twitch/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeTwitch } from '../../support/platforms/twitch.ts'

async function openStage(
  config: Readonly<Record<string, unknown>> = {},
  prepare: (fake: FakeTwitch) => void = () => {},
) {
  const fake = await FakeTwitch.start()
  prepare(fake)
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
/** The failure of a connection that does not open. */
async function refusalOf(config: Readonly<Record<string, unknown>>, prepare: (fake: FakeTwitch) => void = () => {}) {
  const fake = await FakeTwitch.start()
  prepare(fake)
  await using stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  return await stage.failureOf(() => stage.open())
}

describe('a message on Twitch', () => {
  it('tells its channel, its sender and the roles of the sender', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'when does it start?', mentionsBot: true })
    expect((await it.stage.test.waitForReceived(1))[0]).toEqual({
      id,
      chat: { id: '1971641', kind: 'group', title: 'Streamer' },
      sender: { id: '4145994', name: 'Ada', handle: 'ada', roles: ['moderator'] },
      text: 'when does it start?',
      attachments: [],
      mentionsBot: true,
      sentAt: '2026-11-20T12:00:00.464Z',
    })
  })

  it('is for the bot when it answers one of the bot, and not when it answers somebody else', async () => {
    await using it = await openStage()
    it.fake.say({
      message: { text: 'a', fragments: [] },
      reply: { parent_message_id: 'x', parent_user_id: '141981764' },
    })
    it.fake.say({ message: { text: 'b', fragments: [] }, reply: { parent_message_id: 'y', parent_user_id: '9' } })
    const received = await it.stage.test.waitForReceived(2)
    expect(received.map(({ replyTo, mentionsBot }) => [replyTo, mentionsBot])).toEqual([
      ['x', true],
      ['y', false],
    ])
  })

  it('of another channel is left out, also where the chat is shared with it', async () => {
    await using it = await openStage()
    const message = { text: 'elsewhere', fragments: [] }
    it.fake.say({ message, broadcaster_user_id: '99' })
    it.fake.say({ message, source_broadcaster_user_id: '99' })
    it.fake.say({ message: { text: 'here', fragments: [] }, source_broadcaster_user_id: '1971641' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['here'])
  })

  it('that Twitch sends twice has the same id, and one that cannot be read is left out', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'once' })
    await it.fake.deliver({ text: 'once', redeliveryOf: id })
    it.fake.say({ message: 'x' })
    await it.fake.deliver({ text: 'last' })
    expect((await it.stage.test.waitForReceived(2)).map(({ text }) => text)).toEqual(['once', 'last'])
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('keeps the id of its sender, whatever the name pretends to be', async () => {
    await using it = await openStage()
    it.fake.say({ message: { text: 'hi', fragments: [] }, chatter_user_id: '666', chatter_user_name: '\u202eadA' })
    expect((await it.stage.test.waitForReceived(1))[0]?.sender).toMatchObject({ id: '666', name: '\u202eadA' })
  })
})

describe('the socket of Twitch', () => {
  it('is replaced when Twitch asks for it, with what comes meanwhile, and without a new subscription', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    it.fake.askToReconnect()
    await it.fake.deliver({ text: 'two' })
    await it.stage.test.waitForReceived(2)
    await expect.poll(() => it.stage.test.connections).toBe(1)
    await it.fake.deliver({ text: 'three' })
    expect((await it.stage.test.waitForReceived(3)).map(({ text }) => text)).toEqual(['one', 'two', 'three'])
    expect(it.fake.violations).toEqual([])
  })

  it.each(['ws://attacker.test/ws', 'wss://127.0.0.1:1/ws', 'http://127.0.0.1/', 'no address'])(
    'is not replaced by one at %s',
    async (url) => {
      await using it = await openStage()
      it.fake.askToReconnect(url)
      expect(await it.stage.connection.closed).toMatchObject({
        retry: 'later',
        reason: expect.stringContaining('host'),
      })
    },
  )

  it('is lost when its replacement is refused', async () => {
    await using it = await openStage()
    it.fake.askToReconnect(`${it.fake.config.socket_url}?id=another`)
    expect(await it.stage.connection.closed).toMatchObject({ retry: 'later', reason: expect.stringContaining('4007') })
  })

  it('ends for good when the user takes the permission back', async () => {
    await using it = await openStage()
    it.fake.send('revocation', { subscription: { status: 'authorization_revoked' } })
    expect(await it.stage.connection.closed).toMatchObject({ retry: 'never' })
  })

  it('ends when a message could not be stored', async () => {
    await using it = await openStage()
    it.stage.test.isRefusing = true
    await it.fake.deliver({ text: 'lost' })
    expect(await it.stage.connection.closed).toEqual({ retry: 'later', reason: 'the disk is full' })
  })
})

describe('the channels of Twitch', () => {
  it('that are closed to the bot, or are none, are told to the operator; the others are read', async () => {
    await using it = await openStage({ channels: ['streamer', 'other', 'nobody'] }, (fake) => fake.banned.add('99'))
    expect(it.stage.connection.warnings?.()).toEqual([
      'There is no channel nobody on Twitch',
      'The chat of other is not read: twitch answered 403: subscription missing proper authorization',
    ])
    await it.fake.deliver({ text: 'hi' })
    await it.stage.test.waitForReceived(1)
    it.fake.send('revocation', {
      subscription: { status: 'chat_user_banned', condition: { broadcaster_user_id: '1971641' } },
    })
    await it.fake.deliver({ text: 'no more' })
    await expect.poll(() => it.stage.connection.warnings?.()).toHaveLength(3)
  })

  it('have to be one at least', async () => {
    const prepare = (fake: FakeTwitch) => fake.banned.add('1971641')
    expect(await refusalOf({}, prepare)).toMatchObject({ reason: 'invalid_request', retry: 'never' })
    expect(await refusalOf({ channels: ['nobody'] })).toMatchObject({ reason: 'invalid_request', retry: 'never' })
  })

  it.each([['a b'], ['x/y'], ['']])('have no name such as %j', (name) => {
    expect(v.safeParse(TwitchConfig, { token: 'a', client_id: 'b', channels: [name] }).success).toBe(false)
  })
})

describe('sending on Twitch', () => {
  it.each([
    ['msg_rejected', { reason: 'invalid_request', retry: 'never' }],
    ['msg_ratelimit', { reason: 'rate_limit', retry: 'later' }],
    ['msg_duplicate', { reason: 'rate_limit', retry: 'later', retryAfterSecs: 30 }],
  ])('a message that is dropped for %s fails', async (code, failure) => {
    await using it = await openStage()
    it.fake.drop(code, 'no')
    await expect(it.stage.connection.send(it.stage.message('hi'))).rejects.toMatchObject(failure)
    expect(it.fake.sent).toEqual([])
  })

  it('a message that may have been shown, and is dropped as a duplicate, was shown', async () => {
    await using it = await openStage()
    it.fake.drop('msg_duplicate')
    expect(await it.stage.connection.send(it.stage.message('hi', { mayBeSent: true }))).toEqual({
      id: '',
      wasSentBefore: true,
    })
  })

  it('a message is one line', async () => {
    await using it = await openStage()
    await it.stage.connection.send(it.stage.message('one \n\n two\nthree'))
    expect(it.fake.sent[0]?.text).toBe('one two three')
  })
})

describe('the token of Twitch', () => {
  it('is renewed once for all requests that it is refused for, and kept for the next connection', async () => {
    await using it = await openStage()
    it.fake.expire()
    await Promise.all(['one', 'two'].map((text) => it.stage.connection.send(it.stage.message(text))))
    await it.stage.reopen()
    expect(it.fake.refreshes).toBe(1)
    expect(it.fake.sent).toHaveLength(2)
  })

  it('is checked every hour, and the connection ends when it was taken back', async () => {
    await using it = await openStage()
    await it.stage.test.wakeNext()
    await expect.poll(() => it.fake.validations).toBe(2)
    it.fake.expire(true)
    await it.stage.test.wakeNext()
    expect(await it.stage.connection.closed).toEqual({
      retry: 'never',
      reason: 'twitch answered 400: Invalid refresh token',
    })
  })

  it('has to permit to read and to write, and to be one of the application', async () => {
    const lacking = await refusalOf({}, (fake) => (fake.scopes = ['user:read:chat']))
    expect(lacking).toMatchObject({ reason: 'auth', message: expect.stringContaining('user:write:chat') })
    expect(await refusalOf({ client_id: 'another' })).toMatchObject({ reason: 'auth' })
  })

  it('ends the account when it cannot be renewed', async () => {
    const failure = await refusalOf({ refresh_token: undefined }, (fake) => fake.expire())
    expect(failure).toMatchObject({ reason: 'auth', message: expect.stringContaining('refresh_token') })
  })
})

it('twitch: a program with the badge of one is a bot', () => {
  const event = v.parse(ChatMessage, {
    broadcaster_user_id: '1',
    broadcaster_user_name: 'Streamer',
    chatter_user_id: '2',
    chatter_user_login: 'helper',
    chatter_user_name: 'Helper',
    message_id: 'm',
    message: { text: 'hi' },
    badges: [{ set_id: 'moderator' }, { set_id: 'bot-badge' }],
  })
  const context = { botId: '9', sentAt: '' }
  expect(decodeMessage(event, context)?.sender).toMatchObject({ isBot: true, roles: ['moderator', 'bot-badge'] })
  expect(decodeMessage({ ...event, badges: [] }, context)?.sender).not.toHaveProperty('isBot')
})

testHostileInput(
  'twitch',
  {
    event: {
      broadcaster_user_id: '1',
      broadcaster_user_name: 'Streamer',
      chatter_user_id: '2',
      chatter_user_login: 'ada',
      chatter_user_name: 'Ada',
      message_id: 'm',
      message: {
        text: '@Helper hi',
        fragments: [
          { type: 'mention', text: '@Helper', mention: { user_id: '9' } },
          { type: 'text', text: ' hi' },
        ],
      },
      badges: [{ set_id: 'vip' }],
      reply: { parent_message_id: 'p', parent_user_id: '9' },
      source_broadcaster_user_id: '1',
    },
  },
  parsed(Notification, ({ event }) => decodeMessage(event, { botId: '9', sentAt: '2026-11-20T12:00:00Z' })),
)
