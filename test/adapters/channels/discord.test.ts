import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ChannelConnection, OutboundMessage } from 'svc/channels'
import adapter from '../../../adapters/channels/discord/adapter.ts'
import { decodeMessage } from '../../../adapters/channels/discord/decode.ts'
import { encodeMessage, nonceOf } from '../../../adapters/channels/discord/encode.ts'
import { startFakeDiscord } from '../../support/platforms/discord.ts'
import type { FakeDiscord } from '../../support/platforms/discord.ts'
import { TestLink } from '../../support/platforms/link.ts'

const UUID = '01890f3e-7b1c-7cc2-98c4-dc0c0c07398f'
const outbound = (text: string, more: Partial<OutboundMessage> = {}): OutboundMessage => ({
  id: UUID,
  to: { chatId: '2000' },
  text,
  plainText: text,
  attachments: [],
  ...more,
})

describe('the gateway', () => {
  let fake: FakeDiscord
  let link: TestLink
  const open: ChannelConnection[] = []

  beforeEach(async () => {
    fake = await startFakeDiscord()
    link = new TestLink(adapter, fake.config)
  })
  afterEach(async () => {
    for (const connection of open.splice(0)) await connection[Symbol.asyncDispose]()
    await link[Symbol.asyncDispose]()
    await fake[Symbol.asyncDispose]()
    expect(fake.violations).toEqual([])
    expect(link.logged.join('\n')).not.toContain(fake.secrets[0])
  })

  async function connect(): Promise<ChannelConnection> {
    const connection = await adapter.open(link.renew())
    open.push(connection)
    return connection
  }
  const ops = (): readonly number[] => fake.frames.map(({ op }) => op).filter((op) => op !== 1)

  it('resumes after a lost line, and gets what was written meanwhile', async () => {
    const connection = await connect()
    await fake.deliver({ text: 'one' })
    await link.waitForReceived(1)
    await fake.disconnect!()
    expect((await connection.closed).retry).toBe('later')
    await fake.deliver({ text: 'two' })
    await connect()
    expect((await link.waitForReceived(2)).map(({ text }) => text)).toEqual(['one', 'two'])
    expect(ops()).toEqual([2, 6])
    expect(link.deliveries).toBe(2)
  })

  it('gets a message again that could not be stored', async () => {
    const connection = await connect()
    link.isRefusing = true
    await fake.deliver({ text: 'kept' })
    expect((await connection.closed).reason).toContain('the disk is full')
    link.isRefusing = false
    await connect()
    expect((await link.waitForReceived(1))[0]?.text).toBe('kept')
    expect(ops()).toEqual([2, 6])
  })

  it('keeps the session when it is closed, as for a reload', async () => {
    await (await connect())[Symbol.asyncDispose]()
    await fake.deliver({ text: 'during the reload' })
    await connect()
    expect((await link.waitForReceived(1))[0]?.text).toBe('during the reload')
  })

  it('begins another session when Discord ended the last one', async () => {
    const connection = await connect()
    await fake.disconnect!()
    await connection.closed
    fake.endSession()
    await expect(adapter.open(link.renew())).rejects.toMatchObject({ retry: 'later', message: /ended the session/ })
    await connect()
    expect(ops()).toEqual([2, 6, 2])
  })

  it('reads what was written between two sessions, in the chats it read before, in order and with their server', async () => {
    const connection = await connect()
    await fake.deliver({ text: 'direct' })
    await fake.deliver({ text: 'group', isGroup: true })
    await link.waitForReceived(2)
    await fake.disconnect!()
    await connection.closed
    fake.endSession()
    for (let n = 1; n <= 150; n++) await fake.deliver({ text: `missed ${n}`, isGroup: true, mentionsBot: true })
    await fake.deliver({ text: 'missed too' })
    await fake.deliver({ text: 'own', isOwn: true })
    await expect(adapter.open(link.renew())).rejects.toThrow('ended the session')
    link.isRefusing = true
    const refused = await connect()
    expect((await refused.closed).reason).toContain('the disk is full')
    link.isRefusing = false
    await connect()
    const received = (await link.waitForReceived(153)).slice(2)
    const inGroup = received.filter(({ chat }) => chat.kind === 'group')
    expect(inGroup.map(({ text }) => text)).toEqual(Array.from({ length: 150 }, (_, index) => `missed ${index + 1}`))
    expect(received.filter(({ chat }) => chat.kind === 'direct').map(({ text }) => text)).toEqual(['missed too'])
    await fake.deliver({ text: 'now' })
    expect((await link.waitForReceived(154)).at(-1)?.text).toBe('now')
  })

  it('tells what was left out of more than catch_up_messages, and reads the newest', async () => {
    await using few = new TestLink(adapter, { ...fake.config, catch_up_messages: 120 })
    const connection = await adapter.open(few.link)
    await fake.deliver({ text: 'read' })
    await few.waitForReceived(1)
    await connection[Symbol.asyncDispose]()
    fake.endSession()
    for (let n = 1; n <= 150; n++) await fake.deliver({ text: `missed ${n}` })
    await expect(adapter.open(few.renew())).rejects.toThrow('ended the session')
    await using next = await adapter.open(few.renew())
    const received = await few.waitForReceived(121)
    expect([received[1]?.text, received.at(-1)?.text]).toEqual(['missed 31', 'missed 150'])
    const warning = /newest 120 were read, and 30 or more were not: catch_up_messages/
    expect(next.warnings?.()).toEqual([expect.stringMatching(warning)])
    expect(few.logged.join('\n')).toMatch(warning)
  })

  it('reads nothing of what was written more than a day ago', async () => {
    await using away = new TestLink(adapter, fake.config, () => Date.now() + 2 * 86_400_000)
    const connection = await connect()
    await fake.deliver({ text: 'one' })
    await link.waitForReceived(1)
    await connection[Symbol.asyncDispose]()
    fake.endSession()
    await fake.deliver({ text: 'long ago' })
    for (const [key, value] of link.state) if (key !== 'session') away.state.set(key, value)
    await using _connection = await adapter.open(away.link)
    await fake.deliver({ text: 'now' })
    expect((await away.waitForReceived(1)).map(({ text }) => text)).toEqual(['now'])
  })

  it('sends nothing while Discord limits all requests of the bot', async () => {
    const connection = await connect()
    fake.pauseAll(30)
    await expect(connection.send(outbound('one'))).rejects.toMatchObject({ reason: 'rate_limit', retryAfterSecs: 30 })
    const paused = connection.typing!({ chatId: '1000' })
    await expect(paused).rejects.toMatchObject({ message: /limits all requests/, retryAfterSecs: expect.any(Number) })
    expect(fake.typing).toEqual([])
  })

  it('beats with the number of the last event, and ends a connection that does not acknowledge', async () => {
    const connection = await connect()
    await fake.deliver({ text: 'one' })
    await link.waitForReceived(1)
    link.wake()
    await expect.poll(() => fake.frames.at(-1)).toEqual({ op: 1, d: 2 })
    fake.ignoreHeartbeats()
    const heard = link.heard
    fake.sendFrame({ op: 1, d: null })
    await expect.poll(() => fake.frames.length).toBe(3)
    expect(link.heard).toBeGreaterThan(heard)
    link.wake()
    await expect.poll(() => fake.frames.length).toBe(4)
    link.wake()
    expect((await connection.closed).reason).toContain('did not acknowledge')
  })

  it.each([
    [
      { op: 7, d: null },
      { retry: 'later', retryAfterSecs: 0 },
    ],
    [
      { op: 9, d: true },
      { retry: 'later', retryAfterSecs: 0 },
    ],
  ])('ends at once on the frame %o and resumes', async (frame, end) => {
    const connection = await connect()
    fake.sendFrame(frame)
    expect(await connection.closed).toMatchObject(end)
    await connect()
    expect(ops()).toEqual([2, 6])
  })

  it('waits one to five seconds and identifies after a session that cannot be resumed', async () => {
    const connection = await connect()
    fake.sendFrame({ op: 9, d: false })
    const { retryAfterSecs = 0 } = await connection.closed
    expect(retryAfterSecs).toBeGreaterThanOrEqual(1)
    expect(retryAfterSecs).toBeLessThanOrEqual(5)
    await connect()
    expect(ops()).toEqual([2, 2])
  })

  it.each([
    [4004, 'never', /token is not valid/],
    [4013, 'never', /intents/],
    [4014, 'never', /developer portal/],
    [4000, 'later', /4000/],
    [4008, 'later', /4008/],
    [4009, 'later', /4009/],
  ])('takes the close code %i for what it is', async (code, retry, reason) => {
    const connection = await connect()
    fake.closeWith(code)
    const end = await connection.closed
    expect(end.retry).toBe(retry)
    expect(end.reason).toMatch(reason)
  })

  it('tells a wrong token', async () => {
    await using wrong = new TestLink(adapter, fake.wrongConfig!)
    await expect(adapter.open(wrong.link)).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
  })

  it('finds the chat of a thread, and sends into it', async () => {
    const connection = await connect()
    await fake.deliver({ text: 'in a thread', threadId: '3000' })
    const [message] = await link.waitForReceived(1)
    expect(message).toMatchObject({
      chat: { id: '2000', kind: 'group', guildId: expect.stringMatching(/^\d+$/) },
      threadId: '3000',
      sender: { roles: ['4000'] },
    })
    await connection.send(outbound('answer', { to: { chatId: '2000', threadId: '3000' } }))
    expect(fake.sent).toMatchObject([{ chatId: '2000', threadId: '3000', text: 'answer' }])
  })

  it('takes the press of a button, durable before it is acknowledged', async () => {
    const connection = await connect()
    await connection.send(outbound('Sure?', { buttons: [{ label: 'Yes', value: '/approve 1' }] }))
    const id = await fake.deliver({ text: '', button: '/approve 1', isGroup: true })
    expect((await link.waitForReceived(1))[0]).toMatchObject({ text: '/approve 1', mentionsBot: true, id })
    await expect.poll(() => fake.acknowledged).toEqual([id])
  })

  it('sends files, and reads those of a message without the token', async () => {
    const connection = await connect()
    const bytes = new TextEncoder().encode('a,b')
    const file = { kind: 'file', name: 'table.csv', mime: 'text/csv' } as const
    await connection.send(outbound('here', { attachments: [{ ...file, size: 3, bytes: async () => bytes }] }))
    expect(fake.sent[0]?.files).toMatchObject([{ name: 'table.csv', mime: 'text/csv' }])
    await fake.deliver({ text: '', files: [{ ...file, bytes }] })
    const [message] = await link.waitForReceived(1)
    const content = await connection.readAttachment!(message!.attachments[0]!.reference, link.link.signal)
    expect(Buffer.concat(await Array.fromAsync(content)).toString()).toBe('a,b')
  })

  it('shows a message once that is sent again after a lost answer', async () => {
    const connection = await connect()
    fake.fail({ kind: 'lost_answer' })
    await expect(connection.send(outbound('once'))).rejects.toMatchObject({ retry: 'later' })
    await connection.send(outbound('once'))
    expect(fake.sent).toHaveLength(1)
  })

  it('reads the pause of a rate limit as a fraction of seconds', async () => {
    const connection = await connect()
    fake.fail({ kind: 'rate_limit', retryAfterSecs: 0.35 })
    await expect(connection.send(outbound('x'))).rejects.toMatchObject({ reason: 'rate_limit', retryAfterSecs: 0.35 })
  })

  it('edits, types and reacts', async () => {
    const connection = await connect()
    const sent = await connection.send(outbound('draft'))
    await connection.edit!(sent, outbound('final'))
    await connection.typing!({ chatId: '2000' })
    await connection.react!({ chatId: '2000' }, sent.id, '👀')
    expect(fake.sent).toMatchObject([{ text: 'final', edits: ['draft'] }])
    expect(fake.typing).toEqual(['2000'])
    expect(fake.reactions).toEqual([{ messageId: sent.id, emoji: '👀' }])
  })
})

describe('messages', () => {
  const base = {
    id: '5',
    channel_id: '2000',
    guild_id: '9000',
    author: { id: '222', username: 'ada', global_name: 'Ada' },
    content: 'hello',
    timestamp: '2026-11-20T12:00:00.000000+00:00',
    type: 0,
    mentions: [],
    attachments: [],
    sticker_items: [],
  }
  const context = { botId: '111', ignoreBots: true }
  const bot = { id: '111', username: 'svc-bot' }

  it.each([
    ['a plain one', {}, { text: 'hello', mentionsBot: false, sender: { id: '222', name: 'Ada', handle: '@ada' } }],
    ['a mention', { content: '<@111>, hi', mentions: [bot] }, { text: 'hi', mentionsBot: true }],
    ['an old mention', { content: 'hi <@!111>' }, { text: 'hi', mentionsBot: true }],
    ['another mention', { content: 'ask <@7>', mentions: [{ id: '7', username: 'bob' }] }, { text: 'ask @bob' }],
    ['an emoji', { content: '<a:party:99> now' }, { text: ':party: now' }],
    ['a sticker', { content: '', sticker_items: [{ name: 'wave' }] }, { text: '[sticker: wave]' }],
    ['a direct message', { guild_id: undefined }, { chat: { id: '2000', kind: 'direct' }, mentionsBot: true }],
    [
      'a reply to the bot',
      { type: 19, message_reference: { message_id: '4' }, referenced_message: { author: { id: '111' } } },
      { replyTo: '4', mentionsBot: true },
    ],
    ['a forward', { message_reference: { message_id: '4', type: 1 } }, { text: 'hello' }],
  ])('reads %s', (_, more, expected) => {
    const message = decodeMessage({ ...base, ...more }, context)
    expect(message).toMatchObject(expected)
  })

  it.each([
    ['its own', { author: { ...bot, bot: true } }],
    ['one of another bot', { author: { id: '8', username: 'other', bot: true } }],
    ['one of a webhook', { webhook_id: '8' }],
    ['a notice', { type: 6 }],
    ['nothing', { content: '' }],
  ])('skips %s', (_, more) => {
    expect(decodeMessage({ ...base, ...more }, context)).toBeUndefined()
  })

  it('takes an update for an edit only when somebody edited it', () => {
    expect(decodeMessage(base, context, true)).toBeUndefined()
    const edited = { ...base, edited_timestamp: '2026-11-20T12:01:00.000000+00:00' }
    expect(decodeMessage(edited, context, true)).toMatchObject({ id: '5', isEdit: true })
  })

  it('encodes a reply that notifies nobody, under a nonce that fits', () => {
    expect(encodeMessage(outbound('@everyone', { replyTo: '5' }))).toEqual({
      content: '@everyone',
      allowed_mentions: { parse: [], replied_user: false },
      nonce: nonceOf(UUID),
      enforce_nonce: true,
      message_reference: { message_id: '5', fail_if_not_exists: false },
    })
    expect(nonceOf(UUID)).toHaveLength(22)
  })

  it('leaves out buttons that Discord would refuse, and puts five in a row', () => {
    const buttons = Array.from({ length: 7 }, (_, index) => ({ label: 'x'.repeat(90), value: `choice ${index}` }))
    const { components } = encodeMessage(
      outbound('?', { buttons: [...buttons, { label: 'no', value: 'v'.repeat(101) }] }),
    ) as { components: { components: { label: string }[] }[] }
    expect(components.map((row) => row.components.length)).toEqual([5, 2])
    expect(components[0]?.components[0]?.label).toHaveLength(80)
  })
})
