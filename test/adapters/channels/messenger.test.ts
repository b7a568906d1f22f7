import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/messenger/adapter.ts'
import { decodeEvent } from '../../../adapters/channels/messenger/decode.ts'
import { encodeText } from '../../../adapters/channels/messenger/encode.ts'
import { findError } from '../../../adapters/channels/messenger/errors.ts'
import { Event } from '../../../adapters/channels/messenger/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { DOCUMENT, PICTURE } from '../../contract/channel-checks/check.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeMessenger, notificationOf, PAGE } from '../../support/platforms/messenger.ts'

async function openStage() {
  const fake = await FakeMessenger.start()
  const stage = new ChannelStage(adapter, fake)
  await stage.open()
  return {
    fake,
    stage,
    [Symbol.asyncDispose]: async () => {
      await stage[Symbol.asyncDispose]()
      expect(fake.violations).toEqual([])
    },
  }
}

describe('messenger: the webhook', () => {
  it('answers the handshake of Meta', async () => {
    await using it = await openStage()
    expect(await it.stage.receiveWebhook(it.fake.handshake())).toEqual({ status: 200, body: '1158201444' })
  })

  it('takes other pages, receipts, reactions, old and unknown events with 200, and receives none of them', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    const message = { mid: 'm_1', text: 'hello' }
    const notifications = [
      notificationOf([fake.event({ message })], '999'),
      notificationOf([fake.event({ read: { watermark: 1 } }), fake.event({ delivery: { mids: ['m_1'] } })]),
      notificationOf([fake.event({ reaction: { mid: 'm_1', action: 'react', emoji: '❤' } })]),
      notificationOf([fake.event({ message, timestamp: Date.now() - 180_000_000 })]),
      notificationOf([{ ...fake.event({ message }), recipient: { id: '999' } }]),
      notificationOf([fake.event({ message: { mid: 5 } }), null]),
      { object: 'page', entry: [{ id: PAGE, standby: [fake.event({ message })] }] },
      { object: 'instagram', entry: [] },
    ]
    for (const notification of notifications)
      expect((await stage.receiveWebhook(fake.signed(notification))).status).toBe(200)
    expect(stage.test.received).toEqual([])
    expect(stage.test.logged.join('\n')).toMatch(/two days ago[^]*unknown form/)
  })

  it('one event that cannot be read does not hold up the next', async () => {
    await using it = await openStage()
    const events = [{ sender: 1 }, it.fake.event({ message: { mid: 'm_2', text: 'read' } })]
    await it.stage.receiveWebhook(it.fake.signed(notificationOf(events)))
    expect(it.stage.test.received.map(({ text }) => text)).toEqual(['read'])
  })

  it('looks up names, and takes the id where Meta tells none', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    expect(it.stage.test.received[0]?.sender).toEqual({ id: it.fake.person, name: 'Ada Lovelace' })
    await using other = await openStage()
    other.fake.tellsNames = false
    await other.fake.deliver({ text: 'one' })
    expect(other.stage.test.received[0]?.sender.name).toBe(other.fake.person)
  })

  it('a press of a button of an earlier message is a message with its value, the same when it comes again', async () => {
    await using it = await openStage()
    const press = it.fake.event({ postback: { title: 'Start', payload: '/start' } })
    for (let times = 0; times < 2; times++) await it.stage.receiveWebhook(it.fake.signed(notificationOf([press])))
    expect(it.stage.test.deliveries).toBe(2)
    expect(it.stage.test.received).toMatchObject([{ text: '/start', sender: { id: it.fake.person } }])
  })

  it('an edit of a person replaces the message', async () => {
    await using it = await openStage()
    const edit = it.fake.event({ message_edit: { mid: 'm_1', text: 'new', num_edit: 1 } })
    await it.stage.receiveWebhook(it.fake.signed(notificationOf([edit])))
    expect(it.stage.test.received).toMatchObject([{ id: 'm_1', text: 'new', isEdit: true }])
  })
})

describe('messenger: sending', () => {
  it('a retry after a file failed goes on with that file', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    let attempts = 0
    const bytes = async () => {
      if (attempts++ === 0) fake.fail({ kind: 'reset' })
      return PICTURE.bytes
    }
    const attachments = [DOCUMENT, PICTURE].map(attachmentOf)
    const message = stage.message('see', { attachments: [attachments[0]!, { ...attachments[1]!, bytes }] })
    await stage.failureOf(() => stage.connection.send(message))
    await stage.connection.send(message)
    expect(fake.sent.map(({ text, files }) => text || files[0]?.name)).toEqual(['see', 'notes ä.txt', 'dot.png'])
  })

  it('cuts labels between characters, and leaves out what does not fit', () => {
    const buttons = [
      { label: '😀'.repeat(30), value: 'yes' },
      { label: 'long', value: 'x'.repeat(1001) },
      ...Array.from({ length: 20 }, (_, index) => ({ label: `${index}`, value: `${index}` })),
    ]
    const message = { id: '', to: { chatId: '1' }, text: 'x', plainText: 'x', attachments: [], buttons }
    const { quick_replies: replies } = encodeText(message).message
    expect(replies).toHaveLength(13)
    expect(replies?.[0]?.title).toBe('😀'.repeat(20))
  })

  it.each([
    [{ code: 10, error_subcode: 2_018_278 }, 'invalid_request', 'never'],
    [{ code: 551 }, 'invalid_request', 'never'],
    [{ code: 613 }, 'rate_limit', 'later'],
    [{ code: 1200 }, 'overloaded', 'later'],
    [{ code: 2 }, 'overloaded', 'later'],
    [{ code: 190 }, 'auth', 'never'],
  ] as const)('explains %o', (error, reason, retry) => {
    const answer = { status: 400, ok: false, body: { error: { message: 'm', ...error } }, header: () => undefined }
    expect(findError(answer)).toMatchObject({ reason, retry })
  })
})

describe('messenger: files', () => {
  it.each([
    'https://fbcdn.net.example.org/a',
    'https://notfbcdn.net/a',
    'http://cdn.fbsbx.com/a',
    'https://169.254.169.254/a',
    'file:///etc/passwd',
    '',
  ])('does not read %s', async (url) => {
    await using it = await openStage()
    const reading = it.stage.failureOf(async () =>
      it.stage.connection.readAttachment?.({ url }, AbortSignal.timeout(5000)),
    )
    expect(await reading).toMatchObject({ retry: 'never', message: expect.stringContaining('not read from') })
  })

  const decode = (attachments: readonly object[], text?: string) =>
    decodeEvent(
      {
        sender: { id: '1' },
        recipient: { id: PAGE },
        timestamp: 0,
        message: { mid: 'm', text, attachments },
      } as unknown as Event,
      PAGE,
    )
  const url = (name: string) => `https://cdn.fbsbx.com/v/t59/${name}?oh=1`

  it.each([
    ['a file', 'file', 'notes%20%C3%A4.txt', { kind: 'file', name: 'notes ä.txt', mime: 'text/plain' }],
    ['a picture', 'image', '12_n.png', { kind: 'image', name: '12_n.png', mime: 'image/png' }],
    ['a picture without an ending', 'image', '12_n', { kind: 'image', name: 'image.jpg', mime: 'image/jpeg' }],
    ['a recording', 'audio', 'clip-1.mp4', { kind: 'audio', name: 'audio.mp4', mime: 'audio/mp4' }],
    ['a name that is no UTF-8', 'file', '%ff.bin', { kind: 'file', name: '%ff.bin' }],
    ['a name that turns the direction', 'file', 'gnp%E2%80%AE.exe', { kind: 'file', name: 'gnp\u202E.exe' }],
  ])('names %s', (_, type, name, expected) => {
    expect(decode([{ type, payload: { url: url(name) } }])?.attachments[0]).toMatchObject(expected)
  })

  it('a shared post is its address, once', () => {
    const link = { type: 'fallback', payload: { url: 'https://example.org/a' } }
    expect(decode([link])?.text).toBe('https://example.org/a')
    expect(decode([link], 'see https://example.org/a')?.text).toBe('see https://example.org/a')
    expect(decode([{ type: 'constructor', payload: null }, { type: 'image' }])).toBeUndefined()
  })
})

testHostileInput(
  'messenger',
  {
    sender: { id: '1' },
    recipient: { id: PAGE },
    timestamp: 1_800_000_000_000,
    message: {
      mid: 'm_1',
      text: 'hello',
      is_echo: false,
      quick_reply: { payload: 'p' },
      reply_to: { mid: 'm_0' },
      attachments: [{ type: 'file', payload: { url: 'https://cdn.fbsbx.com/a.txt', title: 't' } }],
    },
    postback: { mid: 'm_2', title: 't' },
  },
  parsed(Event, (event) => decodeEvent(event, PAGE)),
)
