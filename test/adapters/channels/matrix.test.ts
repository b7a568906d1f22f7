import { describe, expect, it } from 'vitest'
import type { ChannelConnection, OutboundMessage } from 'svc/channels'
import adapter from '../../../adapters/channels/matrix/adapter.ts'
import { decodeEvent } from '../../../adapters/channels/matrix/decode.ts'
import { encodeText } from '../../../adapters/channels/matrix/encode.ts'
import { isInviteAllowed } from '../../../adapters/channels/matrix/invite.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { startFakeMatrix } from '../../support/platforms/matrix.ts'
import type { FakeMatrix } from '../../support/platforms/matrix.ts'

async function start(configOf = (fake: FakeMatrix): Readonly<Record<string, unknown>> => fake.config) {
  const fake = await startFakeMatrix()
  const link = new TestLink(adapter, configOf(fake))
  const open: ChannelConnection[] = []
  return {
    fake,
    link,
    async open() {
      const connection = await adapter.open(link.renew())
      open.push(connection)
      await fake.waitForListener!()
      return connection
    },
    async [Symbol.asyncDispose]() {
      for (const connection of open) await connection[Symbol.asyncDispose]()
      await link[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
      expect(fake.violations).toEqual([])
      for (const secret of fake.secrets) expect(link.logged.join('\n')).not.toContain(secret)
    },
  }
}
const outbound = (text: string, more: Partial<OutboundMessage> = {}): OutboundMessage => ({
  id: '01890f3e-7b1c-7cc2-98c4-dc0c0c07398f',
  to: { chatId: '!group:example.org' },
  text: `<b>${text}</b>`,
  plainText: text,
  attachments: [],
  ...more,
})

describe('the sync', () => {
  it('does not read what was written before the first start', async () => {
    await using stage = await start()
    await stage.fake.deliver({ text: 'history' })
    await stage.open()
    await stage.fake.deliver({ text: 'new' })
    expect((await stage.link.waitForReceived(1))[0]?.text).toBe('new')
  })

  it('reads all that was written while it was away, page by page and in order', async () => {
    await using stage = await start()
    const first = await stage.open()
    await stage.fake.deliver({ text: 'before' })
    await stage.link.waitForReceived(1)
    await first[Symbol.asyncDispose]()
    stage.fake.limitTimeline(2)
    const texts = Array.from({ length: 30 }, (_, index) => `missed ${index}`)
    for (const text of texts) await stage.fake.deliver({ text, isGroup: true })
    await stage.open()
    expect((await stage.link.waitForReceived(31)).map(({ text }) => text)).toEqual(['before', ...texts])
  })

  it('keeps the position only when everything before it is durable', async () => {
    await using stage = await start()
    const connection = await stage.open()
    const position = stage.link.state.get('next_batch')
    stage.link.isRefusing = true
    await stage.fake.deliver({ text: 'kept' })
    expect((await connection.closed).reason).toContain('the disk is full')
    expect(stage.link.state.get('next_batch')).toBe(position)
    stage.link.isRefusing = false
    await stage.open()
    expect((await stage.link.waitForReceived(1))[0]?.text).toBe('kept')
  })

  it('says once in an encrypted room that it cannot read it, also over a restart, and in the status', async () => {
    await using stage = await start()
    const first = await stage.open()
    expect(first.warnings?.()).toEqual([])
    const encrypted = { type: 'm.room.encrypted', content: { algorithm: 'm.megolm.v1.aes-sha2' } }
    stage.fake.sendEvent('!group:example.org', encrypted)
    stage.fake.sendEvent('!group:example.org', encrypted)
    await stage.fake.deliver({ text: 'plain', isGroup: true })
    await stage.link.waitForReceived(1)
    expect(stage.fake.notices).toEqual([{ room: '!group:example.org', text: expect.stringContaining('encrypted') }])
    expect(first.warnings?.()).toEqual([expect.stringContaining('!group:example.org')])
    await first[Symbol.asyncDispose]()
    const second = await stage.open()
    stage.fake.sendEvent('!group:example.org', encrypted)
    await stage.fake.deliver({ text: 'again', isGroup: true })
    await stage.link.waitForReceived(2)
    expect(stage.fake.notices).toHaveLength(1)
    expect(second.warnings?.()).toHaveLength(1)
  })

  it.each([
    [{ join_invites_from: [] }, false],
    [{ join_invites_from: ['@ada:example.org'] }, true],
    [{ auto_join: 'never', join_invites_from: ['@ada:example.org'] }, false],
  ])('with %o accepts an invitation: %s', async (config, isJoined) => {
    await using stage = await start((fake) => ({ ...fake.config, ...config }))
    await stage.open()
    const room = stage.fake.invite()
    await stage.fake.deliver({ text: 'after the invitation' })
    await stage.link.waitForReceived(1)
    expect(stage.fake.joined.has(room)).toBe(isJoined)
    if (!isJoined) return
    stage.fake.sendEvent(room, { type: 'm.room.message', content: { msgtype: 'm.text', body: 'welcome' } })
    // What was written in the room before the bot came is not for it.
    const received = await stage.link.waitForReceived(2)
    expect(received.map(({ text }) => text)).toEqual(['after the invitation', 'welcome'])
  })
})

describe('signing in', () => {
  it('keeps the token of a password, and signs in again when it ended', async () => {
    await using stage = await start((fake) => fake.passwordConfig)
    const first = await stage.open()
    await first[Symbol.asyncDispose]()
    const second = await stage.open()
    expect(stage.fake.signIns).toBe(1)
    const token = stage.link.secrets.get('access_token')!
    stage.fake.endTokens()
    await stage.fake.deliver({ text: 'wakes the sync' })
    expect(await second.closed).toMatchObject({ retry: 'later', retryAfterSecs: 0 })
    await stage.open()
    expect(stage.fake.signIns).toBe(2)
    expect(stage.link.logged.join('\n')).not.toContain(token)
  })

  it('sends with another token when the last one ended', async () => {
    await using stage = await start((fake) => fake.passwordConfig)
    const connection = await stage.open()
    stage.fake.endTokens()
    await connection.send(outbound('kept'))
    expect(stage.fake.sent).toHaveLength(1)
    expect(stage.fake.signIns).toBe(2)
  })

  it('tries a wrong password once, and says so', async () => {
    await using stage = await start((fake) => ({ ...fake.passwordConfig, password: 'wrong' }))
    await expect(adapter.open(stage.link.link)).rejects.toMatchObject({ reason: 'auth', message: /Signing in failed/ })
    expect(stage.fake.signIns).toBe(1)
  })
})

describe('files', () => {
  it('finds the files of an older homeserver', async () => {
    await using stage = await start()
    const connection = await stage.open()
    stage.fake.legacyMedia.isUsed = true
    const bytes = Buffer.from('old')
    await stage.fake.deliver({ text: '', files: [{ kind: 'file', name: 'a.txt', mime: 'text/plain', bytes }] })
    const [message] = await stage.link.waitForReceived(1)
    const content = await connection.readAttachment!(message!.attachments[0]!.reference, stage.link.link.signal)
    expect(Buffer.concat(await Array.fromAsync(content)).toString()).toBe('old')
  })
})

describe('messages', () => {
  const context = {
    roomId: '!r:example.org',
    botId: '@svc:example.org',
    isDirect: false,
    names: new Map([
      ['@svc:example.org', 'Helper (bot)'],
      ['@ada:example.org', 'Ada'],
    ]),
    isOwn: (id: string) => id === '$mine',
  }
  const base = { msgtype: 'm.text', body: 'hello' }
  const event = (content: Record<string, unknown>, more: object = {}) => ({
    type: 'm.room.message',
    event_id: '$1',
    sender: '@ada:example.org',
    origin_server_ts: 1_763_640_000_000,
    content,
    ...more,
  })

  it.each([
    ['a plain one', base, { id: '$1', text: 'hello', mentionsBot: false, sender: { name: 'Ada' } }],
    ['a listed mention', { ...base, 'm.mentions': { user_ids: ['@svc:example.org'] } }, { mentionsBot: true }],
    ['a mention of nobody', { ...base, body: 'svc', 'm.mentions': { user_ids: [] } }, { mentionsBot: false }],
    ['its name', { ...base, body: 'Helper (bot): hi' }, { text: 'hi', mentionsBot: true }],
    ['its id', { ...base, body: '@svc:example.org hi' }, { text: 'hi', mentionsBot: true }],
    [
      'a quote of an older client',
      {
        ...base,
        body: '> <@svc:example.org> one\n> two\n\nthree',
        'm.relates_to': { 'm.in_reply_to': { event_id: '$0' } },
      },
      { text: 'three', replyTo: '$0', mentionsBot: false },
    ],
    [
      'a reply to the bot',
      { ...base, 'm.relates_to': { 'm.in_reply_to': { event_id: '$mine' } } },
      { replyTo: '$mine', mentionsBot: true },
    ],
    [
      'a thread',
      {
        ...base,
        'm.relates_to': {
          rel_type: 'm.thread',
          event_id: '$t',
          is_falling_back: true,
          'm.in_reply_to': { event_id: '$mine' },
        },
      },
      { threadId: '$t', mentionsBot: false },
    ],
    [
      'a caption',
      { msgtype: 'm.image', body: 'look', filename: 'a.png', url: 'mxc://x/y', info: { mimetype: 'image/png' } },
      { text: 'look', attachments: [{ kind: 'image', name: 'a.png' }] },
    ],
  ])('reads %s', (_, content, expected) => {
    expect(decodeEvent(event(content), context)).toMatchObject(expected)
  })

  it.each([
    ['its own', event(base, { sender: '@svc:example.org' })],
    ['a notice of a bot', event({ ...base, msgtype: 'm.notice' })],
    ['a file that is elsewhere', event({ msgtype: 'm.file', body: 'x', url: 'https://example.org/x' })],
    ['what has no content', event({})],
    ['a redacted one', event({ msgtype: 5 })],
  ])('skips %s', (_, each) => {
    expect(decodeEvent(each, context)).toBeUndefined()
  })

  it('sends HTML with plain text, and mentions nobody', () => {
    expect(encodeText(outbound('hi @room', { to: { chatId: '!r', threadId: '$t' } }))).toEqual({
      msgtype: 'm.text',
      body: 'hi @room',
      format: 'org.matrix.custom.html',
      formatted_body: '<b>hi @room</b>',
      'm.mentions': {},
      'm.relates_to': {
        rel_type: 'm.thread',
        event_id: '$t',
        is_falling_back: true,
        'm.in_reply_to': { event_id: '$t' },
      },
    })
  })

  it.each([
    ['always', [], true],
    ['listed', [], false],
    ['listed', ['!r:x'], true],
    ['listed', ['@ada:x:8448'], true],
    ['listed', [':x:8448'], true],
    ['listed', [':x'], false],
    ['never', ['!r:x'], false],
  ] as const)('with the policy %s and %o accepts: %s', (policy, entries, isAllowed) => {
    const config = { auto_join: policy, join_invites_from: [...entries] }
    expect(isInviteAllowed(config, '!r:x', '@ada:x:8448')).toBe(isAllowed)
  })
})
