import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/feishu/adapter.ts'
import { FeishuConfig, platformOf } from '../../../adapters/channels/feishu/config.ts'
import { decodeMessage, decodePress } from '../../../adapters/channels/feishu/decode.ts'
import { encodeMarkdown } from '../../../adapters/channels/feishu/encode.ts'
import { findError } from '../../../adapters/channels/feishu/errors.ts'
import { Fragments } from '../../../adapters/channels/feishu/fragments.ts'
import { answerFrame, frameCodec } from '../../../adapters/channels/feishu/frame.ts'
import type { Frame } from '../../../adapters/channels/feishu/frame.ts'
import { CardEvent, MessageEvent } from '../../../adapters/channels/feishu/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { decodeFeishuFrame, encodeFeishuFrame } from '../../support/platforms/feishu-frame.ts'
import { startFakeFeishu } from '../../support/platforms/feishu.ts'

const BOT = { open_id: 'ou_bot', app_name: 'Helper' }

async function openStage(options: { readonly webhook?: boolean } = {}) {
  const fake = await startFakeFeishu(options)
  const stage = new ChannelStage(adapter, fake)
  await stage.open()
  return {
    fake,
    stage,
    test: stage.test,
    async [Symbol.asyncDispose]() {
      await stage[Symbol.asyncDispose]()
      expect(fake.violations).toEqual([])
    },
  }
}

const sender = { sender_id: { open_id: 'ou_ada' }, sender_type: 'user' }
const message = (more: object) => ({
  message_id: 'om_1',
  create_time: '1763640000000',
  chat_id: 'oc_1',
  chat_type: 'p2p',
  message_type: 'text',
  content: '{"text":"hello"}',
  ...more,
})
const decoded = (more: object, by: object = sender) =>
  decodeMessage(v.parse(MessageEvent, { sender: by, message: message(more) }), BOT)

describe('the long connection', () => {
  it('answers what is durable, and nothing before', async () => {
    await using it = await openStage()
    const first = await it.fake.deliver({ text: 'one' })
    await expect.poll(() => it.fake.acknowledged).toEqual([first])
    it.test.isRefusing = true
    await it.fake.deliver({ text: 'two' })
    expect((await it.stage.connection.closed).retry).toBe('later')
    expect(it.fake.acknowledged).toEqual([first])
  })

  it('joins an event that comes in several frames, and answers it once', async () => {
    await using it = await openStage()
    it.fake.fragments = 3
    const id = await it.fake.deliver({ text: 'a long one' })
    expect(await it.test.waitForReceived(1)).toMatchObject([{ id, text: 'a long one' }])
    await expect.poll(() => it.fake.acknowledged).toEqual([id])
  })

  it('answers events of other kinds, of another app and in another form, so that they do not come again', async () => {
    await using it = await openStage()
    const other = it.fake.messageEvent(message({})) as { header: object }
    await it.fake.emit({ ...other, header: { ...other.header, event_type: 'im.chat.updated_v1' } })
    await it.fake.emit({ ...other, header: { ...other.header, app_id: 'cli_another' } })
    await it.fake.emit({ ...other, event: { sender: 'nobody' } })
    await it.fake.deliver({ text: 'a real one' })
    await expect.poll(() => it.fake.acknowledged.length).toBe(4)
    expect(it.test.received.map(({ text }) => text)).toEqual(['a real one'])
    expect(it.test.logged.join('\n')).toMatch(/another app[^]*cannot be read/)
  })

  it.each([
    ['a text', { type: 'event' }],
    ['a frame with an unknown type of field', Buffer.from([0x0f, 1, 2])],
  ])('ends with %s, and nothing is received', async (_, data) => {
    await using it = await openStage()
    it.fake.sendRaw(data)
    expect((await it.stage.connection.closed).retry).toBe('later')
    expect(it.test.received).toEqual([])
  })

  it('sends signs of life, and hears the answers', async () => {
    await using it = await openStage()
    await it.test.waitForSleep()
    const { heard } = it.test
    it.test.wake()
    await expect.poll(() => it.fake.pings).toBe(1)
    await expect.poll(() => it.test.heard).toBeGreaterThan(heard)
  })
})

describe('frames', () => {
  const whole = encodeFeishuFrame({
    service: 33,
    method: 1,
    headers: { type: 'event', message_id: 'a', sum: '1', seq: '0' },
    payload: Buffer.from('{}'),
    logId: 9_223_372_036_854_775_001n,
  })
  /** Whatever comes, it is read or refused at once. */
  const read = (bytes: Uint8Array): void => {
    try {
      frameCodec.decode(bytes)
    } catch (error) {
      expect(error).toBeInstanceOf(Error)
    }
  }

  it('come as the fake wrote them, and the answer keeps all but the payload', () => {
    const frame = frameCodec.decode(whole) as Frame
    expect([frame.method, frame.headers.get('message_id'), String(frame.payload)]).toEqual([1, 'a', '123,125'])
    expect(decodeFeishuFrame(answerFrame(frame, { code: 200 }))).toEqual({
      ...decodeFeishuFrame(whole),
      payload: new Uint8Array(Buffer.from('{"code":200}')),
    })
  })

  it('that are cut, changed or random are read or refused', () => {
    for (let length = 0; length < whole.length; length++) read(whole.subarray(0, length))
    for (let at = 0; at < whole.length; at++)
      for (const byte of [0, 0x7f, 0x80, 0xff]) {
        const changed = new Uint8Array(whole)
        changed[at] = byte
        read(changed)
      }
    for (let size = 0; size < 500; size++) read(randomBytes(size))
  })
})

describe('pieces of an event', () => {
  const piece = (headers: Record<string, string>, text = 'x') => ({
    method: 1,
    headers: new Map(Object.entries(headers)),
    payload: Buffer.from(text),
    envelope: new Uint8Array(),
  })

  it('are put in order, whatever order they come in', () => {
    const fragments = new Fragments()
    const sum = '3'
    expect(fragments.join(piece({ message_id: 'a', sum, seq: '2' }, 'c'))).toBeUndefined()
    expect(fragments.join(piece({ message_id: 'b', sum, seq: '0' }, 'z'))).toBeUndefined()
    expect(fragments.join(piece({ message_id: 'a', sum, seq: '0' }, 'a'))).toBeUndefined()
    expect(String(fragments.join(piece({ message_id: 'a', sum, seq: '1' }, 'b')))).toBe('abc')
  })

  it.each([
    { sum: '0', seq: '0' },
    { sum: '-1', seq: '0' },
    { sum: '2', seq: '2' },
    { sum: '2', seq: '-1' },
    { sum: 'x', seq: '0' },
    { sum: '2.5', seq: '0' },
    { sum: '1000000000', seq: '0' },
  ])('numbered %o are refused', (headers) => {
    expect(() => new Fragments().join(piece({ message_id: 'a', ...headers }))).toThrow('do not fit together')
  })

  it('are refused when they are too large together', () => {
    const fragments = new Fragments()
    const large = 'x'.repeat(9_000_000)
    fragments.join(piece({ message_id: 'a', sum: '3', seq: '0' }, large))
    expect(() => fragments.join(piece({ message_id: 'a', sum: '3', seq: '1' }, large))).toThrow('do not fit together')
  })
})

describe('the webhook', () => {
  it('answers the check of its address, with the verification token only', async () => {
    await using it = await openStage({ webhook: true })
    expect(await it.fake.verifyUrl()).toEqual({ status: 200, body: '{"challenge":"prove it"}' })
    expect((await it.fake.verifyUrl('another')).status).toBe(401)
  })

  it('takes events that are signed and not encrypted', async () => {
    await using it = await openStage({ webhook: true })
    const event = it.fake.messageEvent(message({}))
    expect(await it.stage.receiveWebhook(it.fake.request(event, { isPlain: true }))).toMatchObject({ status: 200 })
    expect(it.test.received).toMatchObject([{ id: 'om_1', text: 'hello' }])
  })

  it('a request that comes again hours later is the same message', async () => {
    await using it = await openStage({ webhook: true })
    const request = it.fake.request(it.fake.messageEvent(message({})), { time: Math.floor(Date.now() / 1000) - 25_000 })
    for (let attempt = 0; attempt < 2; attempt++) expect((await it.stage.receiveWebhook(request)).status).toBe(200)
    expect([it.test.deliveries, it.test.received.length]).toEqual([2, 1])
  })

  it('answers an event of another app, and leaves it', async () => {
    await using it = await openStage({ webhook: true })
    const event = it.fake.messageEvent(message({})) as { header: object }
    const foreign = { ...event, header: { ...event.header, app_id: 'cli_another' } }
    expect((await it.stage.receiveWebhook(it.fake.request(foreign))).status).toBe(200)
    expect(it.test.received).toEqual([])
  })

  it('asks now and then whether the credentials still hold', async () => {
    await using it = await openStage({ webhook: true })
    await it.test.waitForSleep()
    const { heard } = it.test
    it.test.wake()
    await expect.poll(() => it.test.heard).toBeGreaterThan(heard)
  })

  it('is refused in the other mode', async () => {
    await using it = await openStage()
    const request = it.fake.request(it.fake.messageEvent(message({})))
    expect((await it.stage.receiveWebhook(request)).status).toBe(401)
  })

  it.each([{}, { encrypt_key: 'k' }, { verification_token: 't' }])('is not configured with %o alone', (given) => {
    const config = { app_id: 'cli_1', token: 's', mode: 'webhook', ...given }
    expect(v.safeParse(FeishuConfig, config).success).toBe(false)
    expect(v.safeParse(FeishuConfig, { ...config, encrypt_key: 'k', verification_token: 't' }).success).toBe(true)
  })
})

describe('access tokens', () => {
  it('one that Feishu took back is replaced, and the message is sent', async () => {
    await using it = await openStage()
    it.fake.revokeToken()
    await it.stage.connection.send(it.stage.message('hello'))
    expect([it.fake.sent.length, it.fake.issued]).toEqual([1, 2])
  })

  it('is asked for once for all requests', async () => {
    await using it = await openStage()
    await Promise.all([1, 2, 3].map((each) => it.stage.connection.send(it.stage.message(`${each}`))))
    expect(it.fake.issued).toBe(1)
  })
})

describe('sending', () => {
  it('takes the typing reaction away with the answer, and shows it once', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'a question' })
    const [question] = await it.test.waitForReceived(1)
    const to = { chatId: 'oc_direct', replyContext: question?.replyContext ?? {} }
    await it.stage.connection.typing?.(to)
    await it.stage.connection.typing?.(to)
    expect(it.fake.shownReactions).toEqual([`${id} Typing`])
    await it.stage.connection.send(it.stage.message('an answer', { to }))
    expect(it.fake.shownReactions).toEqual([])
    await it.stage.connection.typing?.(to)
    expect(it.fake.shownReactions).toEqual([])
  })

  it('answers a message that was taken back with one of its own', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'a question' })
    it.fake.recall(id)
    await it.stage.connection.send(it.stage.message('an answer', { replyTo: id }))
    expect(it.fake.sent).toMatchObject([{ text: 'an answer', chatId: 'oc_direct' }])
    expect(it.fake.sent[0]?.replyTo).toBeUndefined()
  })

  it('goes on with the second file after the first one was sent', async () => {
    await using it = await openStage()
    const file = (name: string) => attachmentOf({ kind: 'file', name, mime: 'text/plain', bytes: Buffer.from(name) })
    const outgoing = it.stage.message('two files', { attachments: [file('a.txt'), file('b.txt')] })
    for (const kind of ['lost_answer', 'server_error'] as const) {
      it.fake.fail({ kind })
      await expect(it.stage.connection.send(outgoing)).rejects.toMatchObject({ retry: 'later' })
    }
    await it.stage.connection.send(outgoing)
    expect(it.fake.sent.map(({ text, files }) => text || files[0]?.name)).toEqual(['two files', 'a.txt', 'b.txt'])
  })

  it('a press in a group is one of the group', async () => {
    await using it = await openStage()
    const buttons = [{ label: 'Yes', value: 'yes' }]
    const to = { chatId: 'oc_group', threadId: 'omt_thread' }
    await it.stage.connection.send(it.stage.message('May I?', { buttons, to }))
    await it.fake.deliver({ text: '', button: 'yes' })
    expect(await it.test.waitForReceived(1)).toMatchObject([
      {
        text: 'yes',
        threadId: 'omt_thread',
        sender: { id: 'ou_ada', name: 'Ada' },
        sentAt: '2025-11-20T12:00:00.000Z',
      },
    ])
  })

  it.each([
    [String.raw`1 \* 2 \< 3 \[x\]`, '1 &#42; 2 &#60; 3 &#91;x&#93;'],
    ['<at id=all></at> hi', '&#60;at id=all>&#60;/at> hi'],
    ['`<at id=all></at>` and `a\\*b`', '`<\u200bat id=all><\u200b/at>` and `a\\*b`'],
    ['```\n**x** \\_ <b>\n```\n\\_', '```\n**x** \\_ <b>\n```\n&#95;'],
    ['a < b and **c**', 'a < b and **c**'],
    ['an open ` tick \\*', 'an open ` tick &#42;'],
  ])('writes %s for a card', (text, expected) => {
    expect(encodeMarkdown(text)).toBe(expected)
  })
})

describe('messages', () => {
  it('names come from the directory, and ids stand for those that are not told', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'hi', isGroup: true })
    await it.test.waitForReceived(1)
    it.fake.tellsNames = false
    const stranger = { sender_id: { open_id: 'ou_eve' } }
    await it.fake.emit(it.fake.messageEvent(message({ chat_id: 'oc_other', chat_type: 'group' }), stranger))
    const [known, unknown] = await it.test.waitForReceived(2)
    expect(known).toMatchObject({ sender: { name: 'Ada' }, chat: { title: 'Harbour', guildId: '2ed263bf32cf1651' } })
    expect(unknown).toMatchObject({ sender: { id: 'ou_eve', name: 'ou_eve' }, chat: { kind: 'group' } })
  })

  it('asks again for what was not told because Feishu was away', async () => {
    await using it = await openStage()
    it.test.nextAnswer = new Response('{}', { status: 503 })
    await it.fake.deliver({ text: 'one', isGroup: true })
    await it.test.waitForReceived(1)
    await it.fake.deliver({ text: 'two', isGroup: true })
    const [one, two] = await it.test.waitForReceived(2)
    expect([one?.chat.title, two?.chat.title]).toEqual([undefined, 'Harbour'])
  })

  it('puts names in the places of keys, once, and leaves the mention of the bot out', () => {
    const mentions = [
      { key: '@_user_1', id: { open_id: 'ou_bot' }, name: 'Helper' },
      { key: '@_user_2', id: { open_id: 'ou_x' }, name: '@_user_1\u202e' },
      { key: '@_user_10', id: { open_id: 'ou_y' }, name: 'Ten' },
    ]
    const content = JSON.stringify({ text: '@_user_1, ask @_user_2 and @_user_10, @_all and @_user_3' })
    expect(decoded({ chat_type: 'group', content, mentions })).toMatchObject({
      text: 'ask @@_user_1\u202e and @Ten, @all and @_user_3',
      mentionsBot: true,
    })
  })

  it('reads a rich text with its links, code, mentions and files', () => {
    const content = JSON.stringify({
      title: 'Report',
      content: [
        [
          { tag: 'at', user_id: '@_user_1', user_name: 'Helper' },
          { tag: 'text', text: 'see ', style: ['bold'] },
          { tag: 'a', text: 'this', href: 'https://example.org/' },
          { tag: 'emotion', emoji_type: 'SMILE' },
        ],
        [{ tag: 'img', image_key: 'img_1' }],
        [{ tag: 'media', file_key: 'file_1' }, 7],
        [{ tag: 'code_block', language: 'GO', text: 'x := 1' }],
      ],
    })
    const mentions = [{ key: '@_user_1', id: { open_id: 'ou_bot' }, name: 'Helper' }]
    expect(decoded({ message_type: 'post', content, mentions })).toMatchObject({
      text: expect.stringMatching(/^Report\nsee \[this\]\(https:\/\/example\.org\/\):SMILE:\n[^]*```go\nx := 1\n```$/),
      attachments: [
        { kind: 'image', reference: { message: 'om_1', key: 'img_1', type: 'image' } },
        { kind: 'video', reference: { message: 'om_1', key: 'file_1', type: 'file' } },
      ],
    })
  })

  it.each([
    ['audio', { file_key: 'f', duration: 3000 }, { attachments: [{ kind: 'audio', name: 'voice.ogg' }] }],
    ['media', { file_key: 'f', file_name: 'a.mp4' }, { attachments: [{ kind: 'video', name: 'a.mp4' }] }],
    ['location', { name: 'Pier', longitude: '9.9', latitude: '53.5' }, { text: 'Pier\nLocation: 53.5, 9.9' }],
  ])('reads the type %s', (type, content, expected) => {
    expect(decoded({ message_type: type, content: JSON.stringify(content) })).toMatchObject(expected)
  })

  it.each([
    ['of an app', {}, { ...sender, sender_type: 'app' }],
    ['of the bot itself', {}, { ...sender, sender_id: { open_id: 'ou_bot' } }],
    ['without a sender', {}, { sender_type: 'user' }],
    [
      'without content in a group',
      { chat_type: 'group', message_type: 'sticker', content: '{"file_key":"f"}' },
      sender,
    ],
  ])('skips one %s', (_, more, by) => {
    expect(decoded(more, by)).toBeUndefined()
  })

  it('a file has its key, and never another address', async () => {
    await using it = await openStage()
    const read = async () =>
      it.stage.connection.readAttachment?.({ message: 'om_1', key: 'x', type: '../../x' }, AbortSignal.timeout(1000))
    await expect(read()).rejects.toThrow()
  })
})

describe('errors and addresses', () => {
  const answer = (status: number, code: number, headers: Readonly<Record<string, string>> = {}) => ({
    status,
    ok: status === 200,
    body: { code, msg: 'no' },
    header: (name: string) => headers[name],
  })

  it.each([
    [10_014, { reason: 'auth', retry: 'never' }],
    [99_991_663, { reason: 'auth', retry: 'later' }],
    [230_020, { reason: 'rate_limit', retry: 'later' }],
    [230_011, { reason: 'not_found', retry: 'never' }],
    [1_000_040_350, { reason: 'overloaded', retry: 'later' }],
    [230_099, { message: '230099 no' }],
  ])('understands the code %s with status 200', (code, expected) => {
    expect(findError(answer(200, code))).toMatchObject(expected)
  })

  it('reads the pause of a limit, where it is a number', () => {
    expect(findError(answer(429, 99_991_400, { 'x-ogw-ratelimit-reset': '7' }))).toMatchObject({ retryAfterSecs: 7 })
    expect(findError(answer(400, 99_991_400, { 'x-ogw-ratelimit-reset': 'soon' }))?.retryAfterSecs).toBeUndefined()
    expect(findError(answer(200, 0))).toBeUndefined()
  })

  it('goes to the platform of the region, or where it is told', () => {
    const base = { app_id: 'cli_1', token: 's' }
    const address = (more: object) => platformOf(v.parse(FeishuConfig, { ...base, ...more }))
    expect(address({})).toBe('https://open.feishu.cn')
    expect(address({ region: 'intl' })).toBe('https://open.larksuite.com')
    expect(address({ region: 'intl', base_url: 'https://example.org' })).toBe('https://example.org')
  })
})

testHostileInput(
  'feishu',
  {
    sender: { sender_id: { open_id: 'ou_ada' }, sender_type: 'user' },
    message: message({
      parent_id: 'om_0',
      thread_id: 'omt_1',
      chat_type: 'group',
      content: '{"text":"@_user_1 hello"}',
      mentions: [{ key: '@_user_1', id: { open_id: 'ou_bot' }, name: 'Helper' }],
    }),
  },
  parsed(MessageEvent, (event) => decodeMessage(event, BOT, 'tenant')),
)

testHostileInput(
  'feishu, a rich text',
  {
    title: 'x',
    content: [
      [
        { tag: 'text', text: 'hi' },
        { tag: 'a', text: 'x', href: 'https://x.test' },
        { tag: 'img', image_key: 'i' },
      ],
    ],
  },
  (raw) => decoded({ message_type: 'post', content: JSON.stringify(raw) ?? '' }),
)

testHostileInput(
  'feishu, a button',
  {
    operator: { open_id: 'ou_ada' },
    action: { value: { answer: 'yes', thread: 'omt_1' } },
    context: { open_message_id: 'om_1', open_chat_id: 'oc_1' },
  },
  parsed(CardEvent, (event) =>
    decodePress(event, { event_id: 'e', create_time: '1' }, { id: event.context.open_chat_id, kind: 'group' }),
  ),
)
