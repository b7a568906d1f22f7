import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/reddit/adapter.ts'
import { RedditConfig } from '../../../adapters/channels/reddit/config.ts'
import { decodeItem } from '../../../adapters/channels/reddit/decode.ts'
import { Item } from '../../../adapters/channels/reddit/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeReddit } from '../../support/platforms/reddit.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeReddit.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

describe('receiving on Reddit', () => {
  it('a mention is a message of its community, in the thread of its post', async () => {
    await using it = await openStage({ subreddits: [] })
    const id = await it.fake.deliver({ text: 'when does it open?', isGroup: true, mentionsBot: true })
    expect((await it.stage.test.waitForReceived(1))[0]).toEqual({
      id,
      chat: { id: 'r/harbour', kind: 'group', title: 'r/harbour' },
      threadId: it.fake.chats.thread,
      sender: { id: 'ada_l', name: 'ada_l' },
      text: 'when does it open?',
      attachments: [],
      mentionsBot: true,
      replyTo: it.fake.chats.thread,
      sentAt: '2025-11-20T12:00:02.000Z',
      replyContext: { name: id },
    })
  })

  it('a reply to the account is for it, although the community lists it as any other comment', async () => {
    await using it = await openStage()
    const to = { chatId: 'r/harbour', threadId: it.fake.chats.thread }
    const { id } = await it.stage.connection.send(it.stage.message('hello', { to }))
    await it.fake.deliver({ text: 'really?', isGroup: true, replyTo: id })
    await it.fake.deliver({ text: 'a third one', isGroup: true })
    const received = await it.stage.test.waitForReceived(2)
    expect(received.map(({ text, mentionsBot }) => [text, mentionsBot])).toEqual([
      ['really?', true],
      ['a third one', false],
    ])
  })

  it('marks messages as read once they are durable, and leaves those from before the first start unread', async () => {
    const fake = await FakeReddit.start()
    const old = await fake.deliver({ text: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    stage.test.isRefusing = true
    const fresh = await fake.deliver({ text: 'new' })
    await stage.connection.closed
    expect(fake.unread).toEqual([fresh, old])
    stage.test.isRefusing = false
    await stage.reopen()
    expect(fake.unread).toEqual([old])
    expect(stage.test.received.map(({ text }) => text)).toEqual(['new'])
  })

  it('reads several pages of what came while it was away, in order', async () => {
    await using it = await openStage()
    await it.fake.disconnect()
    await it.stage.connection.closed
    for (let index = 0; index < 230; index++) await it.fake.deliver({ text: `m${index}`, isGroup: index % 2 === 0 })
    await it.stage.reopen()
    const received = await it.stage.test.waitForReceived(230)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 230 }, (_, index) => `m${index}`))
    expect(it.fake.violations).toEqual([])
  })

  it('a community that closes is a warning, and the inbox is read all the same', async () => {
    await using it = await openStage()
    it.fake.isPrivate = true
    await it.fake.deliver({ text: 'private' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['private'])
    expect(it.stage.connection.warnings?.()).toEqual([expect.stringContaining('does not show the comments')])
    it.fake.isPrivate = false
    await it.fake.deliver({ text: 'again' })
    await it.stage.test.waitForReceived(2)
    expect(it.stage.connection.warnings?.()).toEqual([])
  })

  it('leaves out notices of Reddit, accounts that are gone, and what it cannot read', async () => {
    await using it = await openStage()
    it.fake.tell({ author: null })
    it.fake.tell({ author: '[deleted]' })
    it.fake.tell({ author: 'reddit', distinguished: 'gold-auto' })
    it.fake.tell({ author: 'HELPER_bot' })
    it.fake.tell({ body: 5 })
    it.fake.write({ subreddit: null })
    await it.fake.deliver({ text: 'after' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['after'])
  })

  it('waits for the end of the period when few requests are left', async () => {
    await using it = await openStage()
    it.fake.limit = { remaining: '9.0', reset: '123' }
    const waits: number[] = []
    const { link } = it.stage.test
    const { sleep } = link
    Object.assign(link, { sleep: (ms: number) => (waits.push(ms), sleep(ms)) })
    await it.fake.deliver({ text: 'one' })
    await it.stage.test.waitForReceived(1)
    await expect.poll(() => waits.at(-1)).toBe(123_000)
    it.fake.limit = { remaining: '599.0', reset: '600' }
    await it.fake.deliver({ text: 'two' })
    await it.stage.test.waitForReceived(2)
    await expect.poll(() => waits.at(-1)).toBe(30_000)
  })
})

describe('a mention on Reddit', () => {
  const textOf = (body: string) => {
    const data = { name: 't1_a', author: 'eve', body, created_utc: 1, subreddit: 'harbour', link_id: 't3_a' }
    const message = decodeItem(v.parse(Item, { kind: 't1', data }), { username: 'bot-1', isInbox: false })
    return [message?.text, message?.mentionsBot]
  }
  it.each([
    ['/u/bot-1, hi', 'hi', true],
    ['hi U/BOT-1', 'hi', true],
    ['u/bot-12 hi', 'u/bot-12 hi', false],
    ['https://reddit.com/u/bot-1', 'https://reddit.com/u/bot-1', false],
    ['menu/bot-1', 'menu/bot-1', false],
  ])('in %j', (body, text, isMention) => {
    expect(textOf(body)).toEqual([text, isMention])
  })
})

it('AutoModerator, which answers by itself, is a bot', () => {
  const senderOf = (author: string) => {
    const data = { name: 't1_a', author, body: 'hi', created_utc: 1, subreddit: 'harbour', link_id: 't3_a' }
    return decodeItem(v.parse(Item, { kind: 't1', data }), { username: 'bot-1', isInbox: true })?.sender
  }
  expect(senderOf('AutoModerator')).toMatchObject({ isBot: true })
  expect(senderOf('eve')).not.toHaveProperty('isBot')
})

describe('sending on Reddit', () => {
  it('writes the parts of an answer one below the other', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'long?', isGroup: true, mentionsBot: true })
    const [message] = await it.stage.test.waitForReceived(1)
    const to = { chatId: 'r/harbour', threadId: it.fake.chats.thread, replyContext: message?.replyContext ?? {} }
    const first = await it.stage.connection.send(it.stage.message('one', { to, replyTo: id }))
    await it.stage.connection.send(it.stage.message('two', { to }))
    expect(it.fake.sent.map(({ replyTo }) => replyTo)).toEqual([id, first.id])
  })

  it('does not know where in a community a comment without a post goes', async () => {
    await using it = await openStage()
    const message = it.stage.message('unasked', { to: { chatId: 'r/harbour' } })
    await expect(it.stage.connection.send(message)).rejects.toMatchObject({ reason: 'invalid_request', retry: 'never' })
  })

  it.each([
    [['RATELIMIT', 'Take a break for 9 minutes before trying again.'], { reason: 'rate_limit', retryAfterSecs: 540 }],
    [['RATELIMIT', 'Take a break for 500 milliseconds.'], { reason: 'rate_limit', retryAfterSecs: 0.5 }],
    [['RATELIMIT', 'you are doing that too much', 512.2], { reason: 'rate_limit', retryAfterSecs: 512.2 }],
    [['RATELIMIT', 'later'], { reason: 'rate_limit', retryAfterSecs: 60 }],
    [['DELETED_COMMENT', 'gone'], { reason: 'invalid_request', retry: 'never' }],
  ] as const)('finds the error %j in an answer of status 200', async ([code, text, ratelimit], failure) => {
    await using it = await openStage()
    it.fake.refuse(code, text, ratelimit)
    await expect(it.stage.connection.send(it.stage.message('hi'))).rejects.toMatchObject(failure)
  })

  it('looks for a comment that may have been written before it writes it again', async () => {
    await using it = await openStage()
    const to = { chatId: 'r/harbour', threadId: it.fake.chats.thread }
    const message = it.stage.message('once', { to })
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(message)).rejects.toThrow()
    const [sent] = it.fake.sent
    expect(await it.stage.connection.send({ ...message, mayBeSent: true })).toEqual({
      id: sent?.id,
      wasSentBefore: true,
    })
    await it.stage.connection.send({ ...it.stage.message('other', { to }), mayBeSent: true })
    expect(it.fake.sent.map(({ text }) => text)).toEqual(['once', 'other'])
  })
})

describe('signing in to Reddit', () => {
  it('happens once, and again when the token has ended', async () => {
    await using it = await openStage()
    await it.stage.reopen()
    expect(it.fake.signIns).toBe(1)
    it.fake.expire()
    await Promise.all(['one', 'two'].map((text) => it.stage.connection.send(it.stage.message(text))))
    expect(it.fake.signIns).toBe(2)
  })

  it('fails for a wrong secret as for a wrong password', async () => {
    const fake = await FakeReddit.start()
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, token: 'wrong' })
    await expect(stage.open()).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
  })

  it.each([
    ['server:my-helper:v1 (by /u/harbour_master)', true],
    ['server:my-helper:v1 (by u/harbour_master)', true],
    ['server:my-helper:v1 (by /u/your-own-name)', false],
    ['server:my-helper:v1 (by /u/username)', false],
    ['Mozilla/5.0', false],
    ['', false],
  ])('needs a user agent that says who runs the bot: %j', (agent, isValid) => {
    const config = { token: 'a', client_id: 'b', username: 'bot', password: 'c', user_agent: agent }
    expect(v.safeParse(RedditConfig, config).success).toBe(isValid)
  })
})

testHostileInput(
  'reddit',
  {
    kind: 't1',
    data: {
      name: 't1_abc',
      author: 'ada_l',
      body: 'u/Helper_Bot hi',
      created_utc: 1_763_640_000,
      subreddit: 'harbour',
      subject: 'username mention',
      parent_id: 't3_abc',
      context: '/r/harbour/comments/abc/title/def/?context=3',
      distinguished: null,
    },
  },
  parsed(Item, (item) => decodeItem(item, { username: 'Helper_Bot', isInbox: true })),
)
