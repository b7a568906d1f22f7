import { describe, expect, it } from 'vitest'
import type { OutboundMessage } from 'svc/channels'
import adapter from '../../../adapters/channels/qq/adapter.ts'
import { chatOf } from '../../../adapters/channels/qq/chat.ts'
import { decodeMessage } from '../../../adapters/channels/qq/decode.ts'
import { encodeContent, seqOf } from '../../../adapters/channels/qq/encode.ts'
import { Message } from '../../../adapters/channels/qq/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { PICTURE } from '../../contract/channel-checks/check.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { startFakeQq } from '../../support/platforms/qq.ts'
import { TestLink } from '../../support/platforms/link.ts'

const GUILD = { guild_id: '18700000000001', timestamp: '2026-11-20T20:00:00+08:00' }
const BOB = { id: '1234', username: 'Bob', bot: false }

async function openStage({ webhook = false, config = {} } = {}) {
  const fake = await startFakeQq({ webhook })
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
type Stage = Awaited<ReturnType<typeof openStage>>

/** Where an answer to the last message goes. */
function answerTo({ stage }: Stage): Pick<OutboundMessage, 'to'> {
  const { chat, replyContext = {} } = stage.test.received.at(-1)!
  return { to: { chatId: chat.id, replyContext } }
}

describe('replies', () => {
  it('name the message they answer, each with a number of its own', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'hi', isGroup: true, mentionsBot: true })
    await it.stage.test.waitForReceived(1)
    for (const text of ['one', 'two']) await it.stage.connection.send(it.stage.message(text, answerTo(it)))
    expect(it.fake.sent.map(({ text, replyTo }) => [text, replyTo])).toEqual([
      ['one', id],
      ['two', id],
    ])
    expect(it.fake.violations).toEqual([])
  })

  it('appear once when the answer was lost', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'hi' })
    await it.stage.test.waitForReceived(1)
    const message = it.stage.message('once', answerTo(it))
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(message)).rejects.toMatchObject({ retry: 'later' })
    await it.stage.reopen()
    const again = await it.stage.connection.send({ ...message, mayBeSent: true })
    expect(again).toEqual({ id: '', wasSentBefore: true })
    expect(it.fake.sent).toHaveLength(1)
  })

  it('take the next number when theirs belongs to another one', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'hi' })
    await it.stage.test.waitForReceived(1)
    const message = it.stage.message('not lost', answerTo(it))
    it.fake.takeSeq(id, seqOf(`${message.id} 0`))
    expect((await it.stage.connection.send(message)).id).not.toBe('')
    expect((await it.stage.connection.send(message)).wasSentBefore).toBe(true)
    expect(it.fake.sent.map(({ text }) => text)).toEqual(['not lost'])
  })

  it('are refused for good after five, or when it is too late', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'hi' })
    await it.stage.test.waitForReceived(1)
    for (let n = 0; n < 5; n++) await it.stage.connection.send(it.stage.message(`${n}`, answerTo(it)))
    await expect(it.stage.connection.send(it.stage.message('6', answerTo(it)))).rejects.toMatchObject({
      retry: 'never',
      message: expect.stringContaining('40034128'),
    })
  })

  it('show a picture with its text, and another file after it', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'hi' })
    await it.stage.test.waitForReceived(1)
    const file = { kind: 'file' as const, name: 'a.txt', mime: 'text/plain', bytes: Buffer.from('a') }
    const send = (text: string, files: readonly (typeof file | typeof PICTURE)[]) =>
      it.stage.connection.send(it.stage.message(text, { ...answerTo(it), attachments: files.map(attachmentOf) }))
    await send('look', [PICTURE])
    await send('read', [file])
    expect(it.fake.sent.map(({ text, files }) => [text, files.map(({ name }) => name)])).toEqual([
      ['look', ['dot.png']],
      ['read', []],
      ['', ['a.txt']],
    ])
  })
})

describe('servers', () => {
  const channel = { ...GUILD, id: 'm1', channel_id: '100010', author: BOB }

  it('have channels, in which messages are escaped and nobody is notified', async () => {
    await using it = await openStage()
    const mentions = [
      { id: '6158788878435714165', username: 'svc-bot' },
      { id: '7', username: 'Eve' },
    ]
    const content = '<@!6158788878435714165>, ask <@7> if 1 &lt; 2 &amp;lt; 3'
    const member = { nick: 'Bobby', roles: ['4'] }
    await it.fake.emit('AT_MESSAGE_CREATE', { ...channel, content, mentions, member }, 'channel:100010')
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({
      text: 'ask @Eve if 1 < 2 &lt; 3',
      chat: { id: 'channel:100010', kind: 'group', guildId: '18700000000001' },
      sender: { id: '1234', name: 'Bobby', roles: ['4'] },
      mentionsBot: true,
      sentAt: '2026-11-20T12:00:00.000Z',
    })
    await it.stage.connection.send(it.stage.message('@everyone: 1 < 2 & <@7>', answerTo(it)))
    expect(it.fake.sent).toMatchObject([{ chatId: 'channel:100010', replyTo: 'm1' }])
    expect(it.fake.sent[0]?.text.replaceAll('\u200b', '')).toBe('@everyone: 1 < 2 & <@7>')
    expect(it.fake.violations).toEqual([])
  })

  it('have direct messages, and take pictures only', async () => {
    await using it = await openStage()
    await it.fake.emit('DIRECT_MESSAGE_CREATE', { ...channel, content: 'psst' }, 'dm:18700000000001')
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message).toMatchObject({ chat: { id: 'dm:18700000000001', kind: 'direct' }, mentionsBot: true })
    await it.stage.connection.send(it.stage.message('here', { ...answerTo(it), attachments: [attachmentOf(PICTURE)] }))
    expect(it.fake.sent).toMatchObject([{ text: 'here', files: [{ name: 'dot.png' }] }])
    const attachments = [attachmentOf({ ...PICTURE, mime: 'application/pdf' })]
    const refused = it.stage.connection.send(it.stage.message('x', { ...answerTo(it), attachments }))
    await expect(refused).rejects.toMatchObject({ retry: 'never' })
    expect(it.fake.sent).toHaveLength(1)
  })
})

describe('the access token', () => {
  it('is renewed when QQ no longer takes it, and shortly before it ends', async () => {
    let now = Date.now()
    await using fake = await startFakeQq()
    fake.tokenSecs = 600
    await using test = new TestLink(adapter, fake.config, () => now)
    await using connection = await adapter.open(test.link)
    expect(fake.issued).toBe(1)
    const message: OutboundMessage = {
      id: '01890f3e-7b1c-7cc2-98c4-dc0c0c07398f',
      to: { chatId: fake.chats.direct },
      text: 'one',
      plainText: 'one',
      attachments: [],
    }
    fake.expireTokens()
    await connection.send(message)
    expect(fake.issued).toBe(2)
    now += 540_000
    await connection.send(message)
    expect(fake.issued).toBe(2)
    now += 15_000
    await Promise.all([connection.send(message), connection.send(message)])
    expect(fake.issued).toBe(3)
  })

  it('stays out of errors that quote it', async () => {
    await using it = await openStage()
    it.fake.answerNext(400, { code: 304_003, message: `bad ${it.fake.secrets.join(' ')}` })
    const failure = await it.stage.failureOf(() => it.stage.connection.send(it.stage.message('x')))
    expect(String(failure)).toContain('***')
    for (const secret of it.fake.secrets) expect(String(failure)).not.toContain(secret)
  })
})

describe('answers', () => {
  it.each([
    [200, { code: 22_009, message: 'msg limit exceed' }, { reason: 'rate_limit', retry: 'later' }],
    [200, { code: 40_034_105, message: 'no permission' }, { reason: 'invalid_request', retry: 'never' }],
    [500, { code: 304_027, message: 'MSG_EXPIRE' }, { retry: 'never' }],
    [400, { code: 304_082, message: 'upload media info fail' }, { reason: 'server_error', retry: 'later' }],
    [400, { err_code: 11_253, message: 'not privileged' }, { reason: 'invalid_request', retry: 'never' }],
    [200, { code: 999, message: 'unheard of' }, { retry: 'later' }],
    [504, '', { reason: 'timeout', retry: 'later' }],
  ])('%i with %o is told for what it is', async (status, body, expected) => {
    await using it = await openStage()
    it.fake.answerNext(status, body)
    const failure = await it.stage.failureOf(() => it.stage.connection.send(it.stage.message('x')))
    expect(failure).toMatchObject(expected)
    expect(it.fake.sent).toEqual([])
  })

  it('a message that waits for an audit is sent', async () => {
    await using it = await openStage()
    it.fake.answerNext(202, { code: 304_023, message: 'waiting', data: { message_audit: { audit_id: 'a' } } })
    expect(await it.stage.connection.send(it.stage.message('x'))).toEqual({ id: '' })
  })
})

describe('the gateway', () => {
  const ops = ({ fake }: Stage): readonly number[] => fake.frames.map(({ op }) => op).filter((op) => op !== 1)

  it('resumes after a lost line, and after a reload', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    await it.stage.test.waitForReceived(1)
    await it.fake.disconnect!()
    expect((await it.stage.connection.closed).retry).toBe('later')
    await it.fake.deliver({ text: 'two' })
    await it.stage.reopen()
    await it.stage.connection[Symbol.asyncDispose]()
    await it.fake.deliver({ text: 'three' })
    await it.stage.reopen()
    const texts = (await it.stage.test.waitForReceived(3)).map(({ text }) => text)
    expect(texts).toEqual(['one', 'two', 'three'])
    expect(ops(it)).toEqual([2, 6, 6])
    expect(it.stage.test.deliveries).toBe(3)
  })

  it('identifies anew when the session is gone', async () => {
    await using it = await openStage()
    await it.fake.disconnect!()
    it.fake.endSession()
    await it.stage.connection.closed
    await expect(it.stage.reopen()).rejects.toMatchObject({ retry: 'later', retryAfterSecs: expect.closeTo(3, -0.6) })
    await it.stage.reopen()
    expect(ops(it)).toEqual([2, 6, 2])
    it.fake.closeWith(4006)
    await it.stage.connection.closed
    await it.stage.reopen()
    expect(ops(it)).toEqual([2, 6, 2, 2])
  })

  it('beats with the number of the last event, and ends a connection that does not acknowledge', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    await it.stage.test.waitForReceived(1)
    it.stage.test.wake()
    await expect.poll(() => it.fake.frames.at(-1)).toEqual({ op: 1, d: 2 })
    it.fake.ignoreHeartbeats()
    it.stage.test.wake()
    await expect.poll(() => it.fake.frames.length).toBe(3)
    it.stage.test.wake()
    expect((await it.stage.connection.closed).reason).toContain('did not acknowledge')
  })

  it('ends at once when it is asked to', async () => {
    await using it = await openStage()
    it.fake.sendFrame({ op: 7 })
    expect(await it.stage.connection.closed).toMatchObject({ retry: 'later', retryAfterSecs: 0 })
  })

  it.each([
    [4014, 'never', /intents/],
    [4914, 'never', /sandbox/],
    [4915, 'never', /banned/],
    [4008, 'later', /4008/],
    [4009, 'later', /4009/],
    [4901, 'later', /4901/],
  ])('takes the close code %i for what it is', async (code, retry, reason) => {
    await using it = await openStage()
    it.fake.closeWith(code)
    expect(await it.stage.connection.closed).toMatchObject({ retry, reason: expect.stringMatching(reason) })
  })

  it('leaves out what cannot be read, and goes on', async () => {
    await using it = await openStage()
    await it.fake.emit('C2C_MESSAGE_CREATE', { id: 'x', author: 7 }, it.fake.chats.direct)
    await it.fake.emit('C2C_MESSAGE_CREATE', { id: 'i'.repeat(2000), author: { user_openid: 'u' } }, 'user:u')
    await it.fake.emit('FRIEND_ADD', { id: 'y' }, it.fake.chats.direct)
    await it.fake.deliver({ text: 'after' })
    expect((await it.stage.test.waitForReceived(1))[0]?.text).toBe('after')
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })
})

describe('the webhook', () => {
  it('proves that its address is ours, and signs nothing that could be an event', async () => {
    await using it = await openStage({ webhook: true })
    const d = { plain_token: 'Arq0D5A61EgUu4OxUvOp', event_ts: '1725442341' }
    const answer = await it.stage.receiveWebhook(it.fake.signed({ op: 13, d }))
    expect(JSON.parse(answer.body)).toEqual({
      plain_token: d.plain_token,
      signature: expect.stringMatching(/^[\da-f]{128}$/),
    })
    const forged = { ...d, plain_token: '{"op":0,"t":"C2C_MESSAGE_CREATE","d":{}}' }
    const refused = await it.stage.receiveWebhook(it.fake.signed({ op: 13, d: forged }))
    expect(refused.status).toBe(400)
    expect(refused.body).not.toMatch(/[\da-f]{128}/)
  })

  it('answers a heartbeat, and refuses what is no event', async () => {
    await using it = await openStage({ webhook: true })
    const heartbeat = await it.stage.receiveWebhook(it.fake.signed({ op: 1, d: 7 }))
    expect(JSON.parse(heartbeat.body)).toEqual({ op: 11, d: 7 })
    expect((await it.stage.receiveWebhook(it.fake.signed([]))).status).toBe(400)
    const get = { ...it.fake.signed({ op: 0 }), method: 'GET' as const }
    expect((await it.stage.receiveWebhook(get)).status).toBe(405)
  })

  it('acknowledges nothing that could not be stored', async () => {
    await using it = await openStage({ webhook: true })
    it.stage.test.isRefusing = true
    await expect(it.fake.deliver({ text: 'kept' })).rejects.toThrow('500')
  })

  it('notices credentials that were revoked', async () => {
    await using it = await openStage({ webhook: true, config: { token: 'fakeQqAppSecret0123456789' } })
    const heard = it.stage.test.heard
    await it.stage.test.waitForSleep()
    it.stage.test.wake()
    await expect.poll(() => it.stage.test.heard).toBe(heard + 1)
  })
})

describe('messages', () => {
  const context = { botId: '111', ignoreBots: true }
  const base = { ...GUILD, id: '5', channel_id: '2', content: 'hello', author: BOB }
  const decode = (type: Parameters<typeof decodeMessage>[0]) =>
    parsed(Message, (message) => decodeMessage(type, message, context))

  it.each([
    ['of a bot', { author: { ...BOB, bot: true } }, undefined],
    ['of the bot itself', { author: { id: '111', username: 'svc' } }, undefined],
    ['without a sender', { author: {} }, undefined],
    ['without a text', { content: ' ' }, undefined],
    ['with a mention', { content: 'hi', mentions: [{ id: '111' }] }, { mentionsBot: true }],
    ['to nobody', {}, { mentionsBot: false }],
    ['with a face', { content: '<faceType=1,faceId="4",ext="eyJ0ZXh0IjoiW09LXSJ9">' }, { text: '[OK]' }],
    ['with an unknown face', { content: '<faceType=1,faceId="4",ext="">' }, { text: '[face]' }],
    [
      'with direction marks',
      { author: { id: '7', username: '\u202eadA\u2066' } },
      { sender: { name: '\u202eadA\u2066' } },
    ],
    ['that answers another', { message_reference: { message_id: '4' } }, { replyTo: '4' }],
  ])('one %s', (_, more, expected) => {
    const message = decode('MESSAGE_CREATE')({ ...base, ...more })
    if (expected === undefined) expect(message).toBeUndefined()
    else expect(message).toMatchObject(expected)
  })

  it('announces a voice in a form that everybody can play, and addresses without a scheme as they are meant', () => {
    const attachments = [
      { url: '//example.com/a.silk', content_type: 'voice', filename: 'a.silk', size: 9 },
      {
        url: 'https://example.com/b',
        content_type: 'voice',
        filename: 'b',
        voice_wav_url: 'https://example.com/b.wav',
      },
      { url: 'gchat.example.com/c', content_type: 'image/png' },
      { url: `https://example.com/${'x'.repeat(4000)}` },
    ]
    const message = decode('C2C_MESSAGE_CREATE')({ id: '1', author: { user_openid: 'u' }, attachments })
    expect(message?.attachments).toEqual([
      { kind: 'audio', name: 'a.silk', mime: 'audio/silk', size: 9, reference: { url: 'https://example.com/a.silk' } },
      { kind: 'audio', name: 'b', mime: 'audio/wav', reference: { url: 'https://example.com/b.wav' } },
      { kind: 'image', name: 'file', mime: 'image/png', reference: { url: 'https://gchat.example.com/c' } },
    ])
  })

  it('breaks what would notify people in a group', () => {
    const text = encodeContent(chatOf('group:G'), '<@1> <qqbot-at-user id="1" /> 1 < 2')
    expect(text).not.toMatch(/<@|<qqbot/)
    expect(text.replaceAll('\u200b', '')).toBe('<@1> <qqbot-at-user id="1" /> 1 < 2')
  })

  it.each(['', 'G', 'room:1', 'group:', 'toString:1'])('refuses %o, which is no chat', (id) => {
    expect(() => chatOf(id)).toThrow('no chat of QQ')
  })
})

const FILE = {
  url: 'https://x.test/a',
  content_type: 'voice',
  filename: 'a',
  size: 1,
  voice_wav_url: 'https://x.test/b',
}
const MENTION = { id: '111', member_openid: 'M', nickname: 'n', username: 'u', is_you: false }
for (const [type, place] of [
  ['C2C_MESSAGE_CREATE', { author: { user_openid: 'u', username: 'Ada', bot: false } }],
  ['GROUP_MESSAGE_CREATE', { group_openid: 'g', author: { member_openid: 'M', username: 'Ada' } }],
  ['MESSAGE_CREATE', { channel_id: '1', guild_id: '2', author: BOB, member: { nick: 'B', roles: ['1'] } }],
] as const)
  testHostileInput(
    `qq, ${type}`,
    {
      ...place,
      id: '5',
      content: 'hi <@!111> <@M> &lt; <faceType=1,faceId="4",ext="eyJ0ZXh0IjoiW09LXSJ9">',
      timestamp: '2026-11-20T20:00:00+08:00',
      mentions: [MENTION],
      attachments: [FILE],
      message_reference: { message_id: '4' },
    },
    parsed(Message, (message) => decodeMessage(type, message, { botId: '111', ignoreBots: true })),
  )
