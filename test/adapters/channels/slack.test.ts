import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { ChannelConnection, OutboundMessage, WebhookRequest } from 'svc/channels'
import adapter from '../../../adapters/channels/slack/adapter.ts'
import { decodeEvent } from '../../../adapters/channels/slack/decode.ts'
import { encodeEdit, encodeMessage } from '../../../adapters/channels/slack/encode.ts'
import { findError } from '../../../adapters/channels/slack/errors.ts'
import { readText } from '../../../adapters/channels/slack/text.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { startFakeSlack } from '../../support/platforms/slack.ts'

const outbound = (text: string, more: Partial<OutboundMessage> = {}): OutboundMessage => ({
  id: '01890f3e-7b1c-7cc2-98c4-dc0c0c07398f',
  to: { chatId: 'C0001' },
  text,
  plainText: text,
  attachments: [],
  ...more,
})

async function connect(options: { readonly webhook?: boolean } = {}) {
  const fake = await startFakeSlack(options)
  const link = new TestLink(adapter, fake.config)
  const connection: ChannelConnection = await adapter.open(link.link)
  return {
    fake,
    link,
    connection,
    async [Symbol.asyncDispose]() {
      await connection[Symbol.asyncDispose]()
      await link[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
      expect(fake.violations).toEqual([])
    },
  }
}

describe('Socket Mode', () => {
  it('acknowledges what is durable, and nothing before', async () => {
    await using stage = await connect()
    const { fake, link, connection } = stage
    await fake.deliver({ text: 'one' })
    await expect.poll(() => fake.acknowledged.length).toBe(1)
    expect(link.received).toHaveLength(1)
    link.isRefusing = true
    await fake.deliver({ text: 'two' })
    expect((await connection.closed).retry).toBe('later')
    expect(fake.acknowledged).toHaveLength(1)
  })

  it('opens the next socket before the old one ends, and misses nothing', async () => {
    await using stage = await connect()
    const { fake, link, connection } = stage
    fake.announceEnd('refresh_requested')
    await fake.deliver({ text: 'meanwhile' })
    await expect.poll(() => [fake.opened, fake.open]).toEqual([2, 1])
    await fake.deliver({ text: 'after' })
    expect((await link.waitForReceived(2)).map(({ text }) => text)).toEqual(['meanwhile', 'after'])
    let isClosed = false
    void connection.closed.then(() => (isClosed = true))
    await connection.send(outbound('still open'))
    expect(isClosed).toBe(false)
  })

  it.each([
    ['finds', true, {}],
    ['finds in a thread', true, { to: { chatId: 'C0001', threadId: '1760000000.000001' } }],
    ['sends again without the scope for it', false, {}],
  ])('%s what it may have sent before', async (_, hasHistoryScope, more) => {
    await using stage = await connect()
    const { fake, link, connection } = stage
    fake.hasHistoryScope = hasHistoryScope
    fake.fail({ kind: 'lost_answer' })
    await expect(connection.send(outbound('hello', more))).rejects.toMatchObject({ retry: 'later' })
    await connection.send(outbound('another', { ...more, id: '01890f3e-7b1c-7cc2-98c4-dc0c0c073990' }))
    const again = await adapter.open(link.renew())
    const sent = await again.send(outbound('hello', { ...more, mayBeSent: true }))
    expect(fake.sent.filter(({ text }) => text === 'hello')).toHaveLength(hasHistoryScope ? 1 : 2)
    expect(sent.wasSentBefore).toBe(hasHistoryScope || undefined)
    expect(sent.id).toBe(fake.sent.find(({ text }, index) => text === 'hello' && (hasHistoryScope || index > 0))?.id)
    await again[Symbol.asyncDispose]()
  })

  it('ends for good when Socket Mode is switched off', async () => {
    await using stage = await connect()
    stage.fake.announceEnd('link_disabled')
    expect(await stage.connection.closed).toMatchObject({ retry: 'never', reason: /switched off/ })
  })

  it('hears the pongs of a quiet socket', async () => {
    await using stage = await connect()
    const { heard } = stage.link
    await stage.link.waitForSleep()
    stage.link.wake()
    await expect.poll(() => stage.link.heard).toBeGreaterThan(heard)
  })

  it('takes a message and a mention for one, with the name of the sender', async () => {
    await using stage = await connect()
    await stage.fake.deliver({ text: 'hello', isGroup: true, mentionsBot: true })
    await expect.poll(() => stage.fake.acknowledged.length).toBe(2)
    expect(stage.link.deliveries).toBe(2)
    expect(stage.link.received).toMatchObject([
      { text: 'hello', mentionsBot: true, chat: { guildId: 'T0001' }, sender: { id: 'U00ADA', name: 'Ada' } },
    ])
  })
})

describe('the Events API', () => {
  const post = ({
    headers,
    body,
  }: {
    readonly headers: Readonly<Record<string, string>>
    readonly body: Uint8Array
  }): WebhookRequest => ({
    method: 'POST',
    query: new URLSearchParams(),
    header: (name) => headers[name],
    headers: () => headers,
    body,
  })

  it('answers the check of its address', async () => {
    await using stage = await connect({ webhook: true })
    stage.fake.setWebhook(async ({ headers, body }) => {
      const { status, body: text = '' } = await stage.connection.webhook!(post({ headers, body }))
      return { status, body: text }
    })
    expect(await stage.fake.verifyUrl()).toEqual({ status: 200, body: 'prove it' })
  })

  it('keeps an idle connection alive by asking whose token it is', async () => {
    await using stage = await connect({ webhook: true })
    const { heard } = stage.link
    await stage.link.waitForSleep()
    stage.link.wake()
    await expect.poll(() => stage.link.heard).toBeGreaterThan(heard)
  })

  // The example of https://docs.slack.dev/authentication/verifying-requests-from-slack
  it('accepts the signature that Slack gives as an example', async () => {
    const body =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar' +
      '&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com' +
      '%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
    const secret = '8f742231b10e8888abcd99yyyzzz85a5'
    await using fake = await startFakeSlack({ webhook: true })
    const config = { ...fake.config, signing_secret: secret }
    await using link = new TestLink(adapter, config, () => 1_531_420_618_000)
    await using connection = await adapter.open(link.link)
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    }
    expect(await connection.webhook!(post({ headers, body: Buffer.from(body) }))).toEqual({ status: 200 })
    expect(link.received).toMatchObject([{ text: '/webhook-collect', chat: { id: 'G8PSS9T3V' } }])
    const signature = createHmac('sha256', 'another').update(`v0:1531420618:${body}`).digest('hex')
    const forged = { ...headers, 'x-slack-signature': `v0=${signature}` }
    await expect(connection.webhook!(post({ headers: forged, body: Buffer.from(body) }))).rejects.toMatchObject({
      code: 'unauthorized',
    })
  })
})

describe('files', () => {
  it('does not send the token to a server that is not Slack', async () => {
    await using stage = await connect()
    const { origin } = new URL(stage.fake.config['base_url'] as string)
    const fetch = stage.link.link.fetch
    Object.assign(stage.link.link, {
      fetch: async (url: string, request: object) =>
        url.includes('files.info')
          ? { ...(await fetch(`${origin}/upload/F0`)), status: 200, ok: true, header: () => undefined, text: external }
          : fetch(url, request),
    })
    const external = async () =>
      JSON.stringify({ ok: true, file: { url_private: 'https://slack.com.example.org/steal' } })
    const reading = stage.connection.readAttachment!({ file: 'F1' }, stage.link.link.signal)
    await expect(reading).rejects.toMatchObject({ retry: 'never', message: /not kept by slack/ })
  })
})

describe('messages', () => {
  const context = { botId: 'U00BOT', ignoreBots: true }
  const base = { type: 'message', user: 'U1', text: 'hello', ts: '1763640001.000200', channel: 'C1' }

  it.each([
    ['a plain one', {}, { id: 'C1/1763640001.000200', text: 'hello', mentionsBot: false }],
    ['a direct one', { channel: 'D1', channel_type: 'im' }, { chat: { id: 'D1', kind: 'direct' }, mentionsBot: true }],
    ['a group of people', { channel: 'G1', channel_type: 'mpim' }, { chat: { id: 'G1', kind: 'group' } }],
    ['one in a thread', { thread_ts: '1.000001' }, { threadId: '1.000001', mentionsBot: false }],
    ['one in a thread of the bot', { thread_ts: '1.000001', parent_user_id: 'U00BOT' }, { mentionsBot: true }],
    [
      'a file',
      { subtype: 'file_share', text: '', files: [{ id: 'F1', name: 'a.png', mimetype: 'image/png' }] },
      {
        attachments: [{ kind: 'image', reference: { file: 'F1' } }],
      },
    ],
    ['the time', {}, { sentAt: '2025-11-20T12:00:01.000Z' }],
  ])('reads %s', (_, more, expected) => {
    expect(decodeEvent({ ...base, ...more } as never, context)).toMatchObject(expected)
  })

  it.each([
    ['its own', { user: 'U00BOT' }],
    ['one of a bot', { bot_id: 'B1' }],
    ['a notice', { subtype: 'channel_join' }],
    ['another event', { type: 'reaction_added' }],
    ['a preview that was added', { subtype: 'message_changed', message: base, previous_message: base }],
    ['a file kept elsewhere', { text: '', files: [{ id: 'F1', mode: 'external' }] }],
  ])('skips %s', (_, more) => {
    expect(decodeEvent({ ...base, ...more } as never, context)).toBeUndefined()
  })

  it.each([
    ['<@U00BOT>: a &lt; b &amp;&amp; c', 'a < b && c'],
    [
      'see <https://example.org|the page> and <https://example.org>',
      'see [the page](https://example.org) and https://example.org',
    ],
    ['<@U1|ada> in <#C1|general> <!here>', '@ada in #general @here'],
    ['<!date^1392734382^{date}|today>', 'today'],
    ['&amp;lt;', '&lt;'],
  ])('reads the text %s', (text, expected) => {
    expect(readText(text, 'U00BOT')).toBe(expected)
  })

  it('begins a thread with a reply, and stays in one', () => {
    expect(encodeMessage(outbound('x', { replyTo: 'C0001/1.000002' }), false)).toMatchObject({ thread_ts: '1.000002' })
    const inThread = outbound('x', { to: { chatId: 'C0001', threadId: '1.000001' }, replyTo: 'C0001/1.000002' })
    expect(encodeMessage(inThread, false)).toMatchObject({ thread_ts: '1.000001' })
  })

  it('splits a long text with buttons into sections that fit', () => {
    const text = `${'a'.repeat(2000)}\n${'b'.repeat(2500)}`
    const { blocks } = encodeMessage(outbound(text, { buttons: [{ label: 'Yes', value: 'yes' }] }), false) as {
      blocks: { type: string; text?: { text: string } }[]
    }
    expect(blocks.map(({ type }) => type)).toEqual(['section', 'section', 'actions'])
    expect(blocks.map(({ text }) => text?.text ?? '').join('')).toBe(text)
  })

  it('takes the buttons away with an edit that has none', () => {
    expect(encodeEdit(outbound('done'), 'C0001/1.000002')).toMatchObject({ ts: '1.000002', blocks: [] })
  })

  it.each([
    ['token_revoked', 'auth'],
    ['ratelimited', 'rate_limit'],
    ['internal_error', 'server_error'],
    ['channel_not_found', 'not_found'],
    ['not_in_channel', 'invalid_request'],
    ['missing_scope', 'invalid_request'],
  ])('finds the error %s in an answer with status 200', (error, reason) => {
    const answer = { status: 200, ok: true, body: { ok: false, error, needed: 'files:write' }, header: () => undefined }
    expect(findError(answer)).toMatchObject({ reason, message: /needs the scope files:write/ })
  })
})
