import { describe, expect, it } from 'vitest'
import type { ChannelConnection, OutboundMessage } from 'svc/channels'
import adapter from '../../../adapters/channels/mattermost/adapter.ts'
import { decodePost } from '../../../adapters/channels/mattermost/decode.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { startFakeMattermost } from '../../support/platforms/mattermost.ts'

async function connect() {
  const fake = await startFakeMattermost()
  const link = new TestLink(adapter, fake.config, () => 1_800_000_000_000)
  const open: ChannelConnection[] = []
  return {
    fake,
    link,
    async open() {
      const connection = await adapter.open(link.renew())
      open.push(connection)
      return connection
    },
    async [Symbol.asyncDispose]() {
      for (const connection of open) await connection[Symbol.asyncDispose]()
      await link[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
      expect(fake.violations).toEqual([])
    },
  }
}
const outbound = (chatId: string, more: Partial<OutboundMessage> = {}): OutboundMessage => ({
  id: crypto.randomUUID(),
  to: { chatId },
  text: 'hello',
  plainText: 'hello',
  attachments: [],
  ...more,
})

describe('the WebSocket', () => {
  it('does not read what was written before the first start', async () => {
    await using stage = await connect()
    await stage.fake.deliver({ text: 'history' })
    await stage.open()
    await stage.fake.deliver({ text: 'new' })
    expect((await stage.link.waitForReceived(1))[0]?.text).toBe('new')
  })

  it('reads what was written while it was away before what comes then', async () => {
    await using stage = await connect()
    const first = await stage.open()
    await stage.fake.deliver({ text: 'one' })
    await stage.link.waitForReceived(1)
    await first[Symbol.asyncDispose]()
    await stage.fake.deliver({ text: 'two' })
    await stage.fake.deliver({ text: 'three', isGroup: true, mentionsBot: true })
    await stage.open()
    await stage.fake.deliver({ text: 'four' })
    const received = await stage.link.waitForReceived(4)
    expect(received.map(({ text }) => text)).toEqual(['one', 'two', 'three', 'four'])
    expect(received[2]).toMatchObject({ mentionsBot: true, sender: { handle: '@ada' }, chat: { kind: 'group' } })
  })

  it('reads a post whose event was lost, as the next number tells', async () => {
    await using stage = await connect()
    await stage.open()
    await stage.fake.deliver({ text: 'one' })
    await stage.link.waitForReceived(1)
    stage.fake.dropNextEvent()
    await stage.fake.deliver({ text: 'lost' })
    await stage.fake.deliver({ text: 'next' })
    expect((await stage.link.waitForReceived(3)).map(({ text }) => text)).toEqual(['one', 'lost', 'next'])
  })

  it('loses no older post of a channel that could not be read, nor one of many', async () => {
    await using stage = await connect()
    const first = await stage.open()
    await first[Symbol.asyncDispose]()
    await stage.fake.deliver({ text: 'older', isGroup: true, mentionsBot: true })
    stage.fake.passTime(60_000)
    const many = Array.from({ length: 1200 }, (_, index) => `post ${index}`)
    for (const text of many) await stage.fake.deliver({ text })
    stage.fake.failNextHistory()
    await expect(stage.open()).rejects.toThrow('mattermost answered 500')
    await stage.open()
    expect((await stage.link.waitForReceived(1201)).map(({ text }) => text)).toEqual([...many, 'older'])
  })

  it('hears the pongs of a quiet connection', async () => {
    await using stage = await connect()
    await stage.open()
    const { heard } = stage.link
    await stage.link.waitForSleep()
    stage.link.wake()
    await expect.poll(() => stage.link.heard).toBeGreaterThan(heard)
  })

  it('is spoken to in the threads that the bot began', async () => {
    await using stage = await connect()
    const connection = await stage.open()
    const { id } = await connection.send(outbound(stage.fake.chats.group!))
    await stage.fake.deliver({ text: 'about that', isGroup: true, threadId: id })
    expect(await stage.link.waitForReceived(1)).toMatchObject([
      { threadId: id, mentionsBot: true, chat: { guildId: expect.stringMatching(/^team/) } },
    ])
  })
})

describe('limits', () => {
  it.each([
    ['the seconds that are left', 12],
    ['the time', 1_800_000_012],
  ])('reads a pause that is named as %s', async (_, reset) => {
    await using stage = await connect()
    const connection = await stage.open()
    stage.fake.limitUntil(reset)
    await expect(connection.send(outbound(stage.fake.chats.direct))).rejects.toMatchObject({
      reason: 'rate_limit',
      retryAfterSecs: 12,
    })
  })
})

describe('posts', () => {
  const context = { bot: { id: 'bot', username: 'svc' }, ignoreBots: true, channelType: 'O', senderName: '@ada' }
  const base = { id: 'p1', create_at: 1_763_640_000_000, user_id: 'u1', channel_id: 'c1', message: 'hello' }

  it.each([
    ['a plain one', {}, { id: 'p1', text: 'hello', mentionsBot: false, sender: { name: 'ada', handle: '@ada' } }],
    ['a mention', { message: '@svc, hello' }, { text: 'hello', mentionsBot: true }],
    ['a mention in the middle', { message: 'ask @SVC now' }, { text: 'ask  now', mentionsBot: true }],
    ['a longer name', { message: '@svc-two hello' }, { text: '@svc-two hello', mentionsBot: false }],
    ['an address', { message: 'mail me@svc' }, { text: 'mail me@svc', mentionsBot: false }],
    ['a thread', { root_id: 'p0' }, { threadId: 'p0' }],
  ])('reads %s', (_, more, expected) => {
    expect(decodePost({ ...base, ...more }, context)).toMatchObject(expected)
  })

  it.each([
    ['its own', { user_id: 'bot' }],
    ['one of a bot', { props: { from_bot: 'true' } }],
    ['one of a webhook', { props: { from_webhook: 'true' } }],
    ['a notice', { type: 'system_join_channel' }],
    ['a deleted one', { delete_at: 5 }],
  ])('skips %s', (_, more) => {
    expect(decodePost({ ...base, ...more }, context)).toBeUndefined()
  })

  it('takes an update for an edit only when somebody edited it', () => {
    expect(decodePost(base, context, true)).toBeUndefined()
    expect(decodePost({ ...base, edit_at: 5 }, context, true)).toMatchObject({ id: 'p1', isEdit: true })
  })
})
