import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/viber/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/viber/decode.ts'
import { encodeMessage } from '../../../adapters/channels/viber/encode.ts'
import { findError } from '../../../adapters/channels/viber/errors.ts'
import { withExactTokens } from '../../../adapters/channels/viber/exact-tokens.ts'
import { MessageEvent } from '../../../adapters/channels/viber/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeViber } from '../../support/platforms/viber.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeViber.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
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

describe('viber: the webhook', () => {
  it('is set when the connection is open, and answers the call that Viber makes for it', async () => {
    await using it = await openStage()
    expect(it.fake.webhookUrl).toBe('https://svc.test/api/channels/viber/webhook')
    expect(it.stage.test.received).toEqual([])
  })

  it('a webhook that Viber cannot call is a lost connection', async () => {
    const fake = await FakeViber.start()
    await using stage = new ChannelStage(adapter, fake)
    fake.setWebhook(async () => ({ status: 503, body: '' }))
    const connection = await adapter.open(stage.test.link)
    expect(await connection.closed).toMatchObject({ retry: 'later', reason: expect.stringContaining('invalidUrl') })
  })

  it('notices when another program takes the events', async () => {
    await using it = await openStage()
    await it.stage.test.waitForSleep()
    const { heard } = it.stage.test
    it.stage.test.wake()
    await expect.poll(() => it.stage.test.heard).toBeGreaterThan(heard)
    it.fake.webhookUrl = 'https://elsewhere.test/'
    await it.stage.test.waitForSleep()
    it.stage.test.wake()
    expect((await it.stage.connection.closed).reason).toContain('another program')
  })

  it('takes other events, groups, old messages and unknown forms with 200, and receives none of them', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    const events = [
      fake.event('conversation_started', '1', { user: { id: 'x' }, subscribed: false }),
      fake.event('failed', '2', { user_id: 'x', desc: 'the keyboard is not valid' }),
      fake.message('3', { text: 'in a group' }, { chat_id: 'g', reply_type: 'message' }),
      fake.message('4', { text: 'old' }, { timestamp: Date.now() - 90_000_000 }),
      fake.event('message', '5', { sender: { id: 7 } }),
      '[]',
    ]
    for (const event of events) expect((await stage.receiveWebhook(fake.signed(event))).status).toBe(200)
    expect(stage.test.received).toEqual([])
    const logged = stage.test.logged.join('\n')
    for (const part of ['the keyboard is not valid', 'of a group', 'a day ago', 'cannot be read'])
      expect(logged).toContain(part)
  })

  it('keeps messages apart whose numbers are the same for JavaScript', async () => {
    await using it = await openStage()
    const ids = ['4912661846655238145', '4912661846655238146']
    for (const id of ids) await it.stage.receiveWebhook(it.fake.signed(it.fake.message(id, { text: 'hi' })))
    expect(it.stage.test.received.map(({ id }) => id)).toEqual(ids)
  })

  it('leaves alone what people write about tokens', () => {
    const event = { message_token: 1, message: { text: '"message_token":5, \\"message_token":5' } }
    const exact: unknown = JSON.parse(Buffer.from(withExactTokens(Buffer.from(JSON.stringify(event)))).toString())
    expect(exact).toEqual({ ...event, message_token: '1' })
  })
})

describe('viber: files', () => {
  it.each([
    'https://viber.com.example.org/a',
    'https://notviber.com/a',
    'http://media.viber.com/a',
    'https://10.0.0.1/a',
    'file:///etc/passwd',
    '',
  ])('does not read %s', async (url) => {
    await using it = await openStage()
    const reading = it.stage.failureOf(async () =>
      it.stage.connection.readAttachment?.({ url }, AbortSignal.timeout(5000)),
    )
    expect(await reading).toMatchObject({ retry: 'never', message: expect.stringContaining('not read from') })
  })
})

describe('viber: messages', () => {
  const sender = { id: 'U=', name: 'Ada \u202E' }
  const decode = (message: object) =>
    decodeMessage(v.parse(MessageEvent, { event: 'message', timestamp: 0, message_token: '1', sender, message }))

  it.each([
    ['a place', { type: 'location', location: { lat: 1.5, lon: 2 } }, { text: 'Location: 1.5, 2' }],
    ['a contact', { type: 'contact', contact: { name: 'Bo', phone_number: '1' } }, { text: 'Contact: Bo 1' }],
    ['a link', { type: 'url', media: 'https://example.org' }, { text: 'https://example.org', attachments: [] }],
    ['a sticker', { type: 'sticker', sticker_id: 1 }, { text: '[sticker]' }],
    [
      'a picture with a text',
      { type: 'picture', text: 'look', media: 'https://media.viber.com/a' },
      { text: 'look', attachments: [{ kind: 'image', reference: { url: 'https://media.viber.com/a' } }] },
    ],
    [
      'a file',
      { type: 'file', media: 'https://media.viber.com/b', file_name: 'gnp\u202E.pdf', file_size: 4 },
      { attachments: [{ kind: 'file', name: 'gnp\u202E.pdf', mime: 'application/pdf', size: 4 }] },
    ],
    ['a name that turns the direction', { type: 'text', text: 'x' }, { sender: { id: 'U=', name: 'Ada \u202E' } }],
  ])('reads %s', (_, message, expected) => {
    expect(decode(message)).toMatchObject(expected)
  })

  it('leaves out a file without an address, or with one that is too long to keep', () => {
    expect(decode({ type: 'picture' })).toBeUndefined()
    expect(decode({ type: 'video', media: `https://media.viber.com/${'a'.repeat(5000)}` })).toBeUndefined()
    expect(decode({ type: 'constructor', media: 'https://media.viber.com/a' })).toBeUndefined()
  })

  it('shows labels as they are, and twelve buttons at most', () => {
    const buttons = Array.from({ length: 20 }, () => ({ label: '<b>&', value: 'yes' }))
    const message = { id: '', to: { chatId: 'U=' }, text: 'x', plainText: 'x', attachments: [], buttons }
    const config = v.parse(adapter.config, { token: 't', webhook_url: 'https://svc.test', sender_name: 'Helper' })
    const { keyboard } = encodeMessage(message, config as never)
    expect(keyboard?.Buttons).toHaveLength(12)
    expect(keyboard?.Buttons[0]?.Text).toBe('&lt;b&gt;&amp;')
  })

  it.each([
    [2, 'auth', 'never'],
    [6, 'invalid_request', 'never'],
    [9, 'auth', 'never'],
    [12, 'rate_limit', 'later'],
    [10, 'overloaded', 'later'],
    [18, 'invalid_request', 'never'],
    [24, 'invalid_request', 'never'],
    [99, 'server_error', 'later'],
  ] as const)('finds the error %s in an answer with status 200', (status, reason, retry) => {
    const answer = { status: 200, ok: true, body: { status, status_message: 'why' }, header: () => undefined }
    expect(findError(answer)).toMatchObject({ reason, retry, message: `why (${status})` })
  })

  it('needs a token, a webhook and a name that fits', () => {
    const config = { token: 't', webhook_url: 'https://svc.test', sender_name: 'Helper' }
    expect(v.is(adapter.config, config)).toBe(true)
    for (const wrong of [{ token: '' }, { webhook_url: 'ftp://x' }, { sender_name: 'x'.repeat(29) }])
      expect(v.is(adapter.config, { ...config, ...wrong })).toBe(false)
  })
})

testHostileInput(
  'viber',
  {
    event: 'message',
    timestamp: 1_800_000_000_000,
    message_token: '4912661846655238145',
    chat_id: 'c',
    sender: { id: 'U=', name: 'Ada' },
    message: {
      type: 'file',
      text: 'hello',
      media: 'https://media.viber.com/a',
      file_name: 'a.txt',
      file_size: 1,
      size: 1,
      location: { lat: 1, lon: 2 },
      contact: { name: 'Bo', phone_number: '1' },
    },
  },
  parsed(MessageEvent, decodeMessage),
)
