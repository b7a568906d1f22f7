import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/line/adapter.ts'
import { decodeEvent } from '../../../adapters/channels/line/decode.ts'
import { encodeText } from '../../../adapters/channels/line/encode.ts'
import { findError } from '../../../adapters/channels/line/errors.ts'
import { ReplyTokens } from '../../../adapters/channels/line/reply-tokens.ts'
import { Event } from '../../../adapters/channels/line/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeLine } from '../../support/platforms/line.ts'

async function openStage() {
  const fake = await FakeLine.start()
  const stage = new ChannelStage(adapter, fake)
  await stage.open()
  return {
    fake,
    stage,
    /** The destination of an answer to the newest message. */
    to: () => {
      const { chat, replyContext } = stage.test.received.at(-1)!
      return { chatId: chat.id, ...(replyContext && { replyContext }) }
    },
    [Symbol.asyncDispose]: async () => {
      await stage[Symbol.asyncDispose]()
      expect(fake.violations).toEqual([])
    },
  }
}
const text = (id: string, more: object = {}) => ({ message: { id, type: 'text', text: 'hello', ...more } })

describe('line: replies', () => {
  it('answers with the reply token once, and pushes what follows', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'a question', isGroup: true, mentionsBot: true })
    for (const answer of ['one', 'two']) await it.stage.connection.send(it.stage.message(answer, { to: it.to() }))
    expect(it.fake.ways).toEqual(['reply', 'push'])
    expect(it.fake.sent.map(({ chatId }) => chatId)).toEqual([it.fake.chats.group, it.fake.chats.group])
  })

  it('pushes when LINE no longer takes the token', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'a question' })
    it.fake.expireReplyTokens()
    await it.stage.connection.send(it.stage.message('late', { to: it.to() }))
    expect(it.fake.ways).toEqual(['push'])
  })

  it('a push that fails after that is sent again, as the token was not used for it', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'a question' })
    it.fake.expireReplyTokens()
    const message = it.stage.message('late', { to: it.to() })
    it.stage.test.nextAnswer = Response.json({ message: 'Invalid reply token' }, { status: 400 })
    it.fake.fail({ kind: 'server_error' })
    await it.stage.failureOf(() => it.stage.connection.send(message))
    await it.stage.reopen()
    expect((await it.stage.connection.send(message)).wasSentBefore).toBeUndefined()
    expect(it.fake.ways).toEqual(['push'])
  })

  it('a reply whose answer was lost is not sent again, not even after a crash', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'a question' })
    const message = it.stage.message('once', { to: it.to() })
    it.fake.fail({ kind: 'lost_answer' })
    await it.stage.failureOf(() => it.stage.connection.send(message))
    await it.stage.reopen()
    expect(await it.stage.connection.send(message)).toMatchObject({ wasSentBefore: true })
    expect(it.fake.sent.map((sent) => sent.text)).toEqual(['once'])
  })

  it('a reply that did not reach LINE is sent as one again', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'a question' })
    const message = it.stage.message('once', { to: it.to() })
    it.fake.fail({ kind: 'reset' })
    await it.stage.failureOf(() => it.stage.connection.send(message))
    await it.stage.connection.send(message)
    expect(it.fake.ways).toEqual(['reply'])
  })

  it('keeps the claims of tokens that are still good, and no others', async () => {
    const values = new Map<string, string>()
    const state = {
      read: async (key: string) => values.get(key),
      write: async (key: string, value: string) => void values.set(key, value),
    }
    let now = 0
    const tokens = () => new ReplyTokens({ state, now: () => now })
    const first = tokens()
    expect(await first.claim('a', 50, 'one')).toBe('new')
    expect(await first.claim('a', 50, 'two')).toBe('taken')
    expect(await tokens().claim('a', 50, 'one')).toBe('again')
    now = 60
    await tokens().claim('b', 110, 'two')
    expect(JSON.parse(values.get('reply-tokens') ?? '')).toEqual([{ token: 'b', until: 110, messageId: 'two' }])
  })
})

describe('line: the webhook', () => {
  it('answers the check of its address, which has no events', async () => {
    await using it = await openStage()
    expect(await it.stage.receiveWebhook(it.fake.signed(it.fake.callback([])))).toMatchObject({ status: 200 })
  })

  it('leaves out events of another account, of another program, of long ago, and those it cannot read', async () => {
    await using it = await openStage()
    const { fake } = it
    const old = { ...text('2'), timestamp: Date.now() - 90_000_000 }
    const callbacks = [
      fake.callback([fake.event({}, text('1'))], 'U00000000000000000000000000somebody'),
      fake.callback([fake.event({}, old), fake.event({}, { ...text('3'), mode: 'standby' })]),
      fake.callback([fake.event({}, { message: { id: 5 } }), fake.event({}, text('4'))]),
    ]
    for (const callback of callbacks) expect((await it.stage.receiveWebhook(fake.signed(callback))).status).toBe(200)
    expect(it.stage.test.received.map(({ id }) => id)).toEqual(['4'])
    expect(it.stage.test.logged.join('\n')).toMatch(/more than a day ago[^]*cannot be read/)
  })

  it('refuses other methods, and a signed body that is no JSON', async () => {
    await using it = await openStage()
    const [get] = [{ method: 'GET' as const, headers: {}, body: new Uint8Array() }]
    expect(await it.stage.receiveWebhook(get)).toMatchObject({ status: 405 })
    const signed = it.fake.signed({})
    expect(await it.stage.receiveWebhook({ ...signed, body: Buffer.from('{') })).toMatchObject({ status: 401 })
  })

  it('looks a name up once, and takes the id for one that LINE does not tell', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    for (const one of ['one', 'two']) await fake.deliver({ text: one })
    expect(fake.profiles).toHaveLength(1)
    const stranger = fake.event({}, { ...text('9'), source: { type: 'user', userId: 'U9' } })
    await stage.receiveWebhook(fake.signed(fake.callback([stranger])))
    expect(stage.test.received.at(-1)?.sender).toEqual({ id: 'U9', name: 'U9' })
    await fake.deliver({ text: 'three', isGroup: true })
    expect(stage.test.received.at(-1)).toMatchObject({ chat: { title: 'Harbour' }, sender: { name: 'Ada' } })
  })

  it('takes a quote of its own message for a mention', async () => {
    await using it = await openStage()
    const { id } = await it.stage.connection.send(it.stage.message('ahoy', { to: { chatId: it.fake.chats.group } }))
    await it.fake.deliver({ text: 'and?', isGroup: true, replyTo: id })
    await it.fake.deliver({ text: 'to Ada', isGroup: true, replyTo: '1' })
    expect(it.stage.test.received.map(({ mentionsBot }) => mentionsBot)).toEqual([true, false])
  })

  it('a file that LINE still prepares may be read later', async () => {
    await using it = await openStage()
    await it.fake.deliver({
      text: '',
      files: [{ kind: 'video', name: 'v.mp4', mime: 'video/mp4', bytes: Buffer.from('film') }],
    })
    const reference = it.stage.test.received[0]?.attachments[0]?.reference ?? {}
    it.fake.isPreparing = true
    const error = await it.stage.failureOf(async () =>
      it.stage.connection.readAttachment?.(reference, AbortSignal.timeout(5000)),
    )
    expect(error).toMatchObject({ retry: 'later' })
  })

  it('shows no animation in groups, where LINE has none', async () => {
    await using it = await openStage()
    await it.stage.connection.typing?.({ chatId: it.fake.chats.group })
    expect(it.fake.typing).toEqual([])
  })
})

describe('line: limits', () => {
  it('a used up allowance is not waited for', async () => {
    await using it = await openStage()
    it.fake.isOverQuota = true
    const error = await it.stage.failureOf(() => it.stage.connection.send(it.stage.message('too many')))
    expect(error).toMatchObject({ retry: 'never', message: expect.stringContaining('monthly limit') })
  })

  it.each([
    [429, 'The API rate limit has been exceeded. Try again later.', {}],
    [400, 'The request body has 1 error(s)', { details: [{ property: 'messages[0].text', message: 'empty' }] }],
  ])('explains status %s in the words of LINE', (status, message, more) => {
    const found = findError({ status, ok: false, body: { message, ...more }, header: () => undefined })
    expect(found?.message).toContain(message)
    expect(found?.reason).toBeUndefined()
  })

  it('cuts labels between characters, and leaves out what does not fit', () => {
    const family = '👨‍👩‍👧‍👦'
    const buttons = [
      { label: family.repeat(30), value: 'yes' },
      { label: 'long', value: 'x'.repeat(301) },
      ...Array.from({ length: 20 }, (_, index) => ({ label: `${index}`, value: `${index}` })),
    ]
    const message = { id: '', to: { chatId: '' }, text: 'x', plainText: 'x', attachments: [], buttons }
    const { quickReply } = encodeText(message, undefined)
    expect(quickReply?.items).toHaveLength(13)
    expect(quickReply?.items[0]?.action.label).toBe(family.repeat(20))
  })
})

describe('line: messages', () => {
  const context = { now: 1_800_000_000_000, isOwn: () => false }
  const group = { type: 'group', groupId: 'C1', userId: 'U1' }
  const decode = (message: object, source: object = group) =>
    decodeEvent({ type: 'message', timestamp: 0, webhookEventId: 'E1', source, message } as Event, context)
  const mention = (index: number, length: number, isSelf = true) => ({ index, length, isSelf })

  it.each([
    [
      'every mention of the bot, and no other',
      {
        type: 'text',
        text: '@Bot, tell @Ada that @Bot 😀 is here',
        mention: { mentionees: [mention(0, 4), mention(11, 4, false), mention(21, 4)] },
      },
      { text: 'tell @Ada that  😀 is here', mentionsBot: true },
    ],
    ['a sticker', { type: 'sticker', keywords: ['Happy', 'Yes'] }, { text: '[sticker: Happy, Yes]' }],
    ['a place', { type: 'location', title: 'Pier', latitude: 1.5, longitude: 2 }, { text: 'Pier\nLocation: 1.5, 2' }],
    [
      'a picture that is kept elsewhere as its address',
      { type: 'image', contentProvider: { type: 'external', originalContentUrl: 'https://example.org/a.jpg' } },
      { text: 'https://example.org/a.jpg', attachments: [] },
    ],
    [
      'a name with a mark that turns the direction',
      { type: 'file', fileName: 'evil\u202Egnp.exe', fileSize: 3 },
      { attachments: [{ kind: 'file', name: 'evil\u202Egnp.exe', size: 3 }] },
    ],
  ])('reads %s', (_, message, expected) => {
    expect(decode({ id: '1', ...message })).toMatchObject(expected)
  })

  it('a person who is not told is nobody that a list of people could name', () => {
    const sender = decode({ id: '1', type: 'text', text: 'hi' }, { type: 'room', roomId: 'R1' })?.sender
    expect(sender).toEqual({ id: 'unknown', name: 'unknown', isUnverified: true })
  })

  it('does not take a name of an object for a kind of file', () => {
    expect(decode({ id: '1', type: '__proto__' })).toBeUndefined()
    expect(decode({ id: '1', type: 'constructor' })).toBeUndefined()
  })
})

testHostileInput(
  'line',
  {
    type: 'message',
    mode: 'active',
    timestamp: 1_800_000_000_000,
    webhookEventId: '01FZ74A0TDDPYRVKNK77XKC3ZR',
    replyToken: 'r',
    source: { type: 'group', groupId: 'C1', userId: 'U1', roomId: 'R1' },
    message: {
      id: '1',
      type: 'text',
      text: '@Bot hello',
      quoteToken: 'q',
      quotedMessageId: '2',
      mention: { mentionees: [{ index: 0, length: 4, isSelf: true }] },
      contentProvider: { type: 'line', originalContentUrl: 'https://example.org' },
      fileName: 'a.txt',
      fileSize: 1,
      keywords: ['k'],
      title: 't',
      latitude: 1,
      longitude: 2,
    },
    postback: { data: 'd' },
  },
  parsed(Event, (event) => decodeEvent(event, { now: 0, isOwn: () => false })),
)
