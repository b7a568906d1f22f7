import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/wecom/adapter.ts'
import { decodeAppMessage } from '../../../adapters/channels/wecom/app-decode.ts'
import { decodeBotMessage } from '../../../adapters/channels/wecom/bot-decode.ts'
import { decryptFile, decryptMessage } from '../../../adapters/channels/wecom/cipher.ts'
import { WeComConfig } from '../../../adapters/channels/wecom/config.ts'
import { encodeMarkdown } from '../../../adapters/channels/wecom/encode.ts'
import { findError } from '../../../adapters/channels/wecom/errors.ts'
import { AppMessage, BotMessage } from '../../../adapters/channels/wecom/wire.ts'
import { parseXml } from '../../../adapters/channels/wecom/xml.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeWeComApp } from '../../support/platforms/wecom-app.ts'
import { startFakeWeComBot } from '../../support/platforms/wecom-bot.ts'
import { encryptForWeCom, sealForWeCom } from '../../support/platforms/wecom-crypto.ts'

const AES_KEY = 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG'

async function openBot() {
  const fake = await startFakeWeComBot()
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
async function openApp() {
  const fake = await FakeWeComApp.start()
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

describe('a robot', () => {
  it('answers by the request of the question once, and then by itself', async () => {
    await using it = await openBot()
    await it.fake.deliver({ text: 'a question' })
    const [question] = await it.test.waitForReceived(1)
    const to = { chatId: question?.chat.id ?? '', replyContext: question?.replyContext ?? {} }
    for (const text of ['one', 'two']) await it.stage.connection.send(it.stage.message(text, { to }))
    expect(it.fake.ways).toEqual(['answer', 'push'])
    expect(it.fake.sent.map(({ text }) => text)).toEqual(['one', 'two'])
  })

  it('waits when there is a limit, and does not answer in another way', async () => {
    await using it = await openBot()
    await it.fake.deliver({ text: 'a question' })
    const [question] = await it.test.waitForReceived(1)
    const to = { chatId: question?.chat.id ?? '', replyContext: question?.replyContext ?? {} }
    it.fake.errcode = 45_009
    const send = () => it.stage.connection.send(it.stage.message('an answer', { to }))
    await expect(send()).rejects.toMatchObject({ reason: 'rate_limit', retry: 'later' })
    await send()
    expect(it.fake.ways).toEqual(['answer'])
  })

  it.each([850_001, 500])('sends again what WeCom failed for with the unknown code %i', async (code) => {
    await using it = await openBot()
    it.fake.errcode = code
    const send = () => it.stage.connection.send(it.stage.message('hello'))
    await expect(send()).rejects.toMatchObject({ reason: 'server_error', retry: 'later' })
    await send()
    expect(it.fake.sent.map(({ text }) => text)).toEqual(['hello'])
  })

  it('reads and writes in groups, where a message begins with its name', async () => {
    await using it = await openBot()
    await it.fake.deliver({ text: 'ask @bob', isGroup: true })
    const [message] = await it.test.waitForReceived(1)
    expect(message).toMatchObject({ chat: { id: 'wrGroupChat', kind: 'group' }, text: 'ask @bob', mentionsBot: true })
    await it.stage.connection.send(it.stage.message('unasked', { to: { chatId: 'wrGroupChat' } }))
    expect(it.fake.sent).toMatchObject([{ chatId: 'wrGroupChat', text: 'unasked' }])
  })

  it('leaves messages to another robot, and those in another form', async () => {
    await using it = await openBot()
    it.fake.emit({ aibotid: 'another', text: { content: 'not for you' } })
    it.fake.emit({ from: 'nobody' })
    it.fake.emit({ msgtype: 'stream' })
    it.fake.event('enter_chat')
    await it.fake.deliver({ text: 'a real one' })
    expect((await it.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['a real one'])
    expect(it.test.logged.join('\n')).toMatch(/another robot[^]*cannot be read/)
  })

  it('waits a minute when another program connects as it', async () => {
    await using it = await openBot()
    it.fake.event('disconnected_event')
    expect(await it.stage.connection.closed).toMatchObject({ retry: 'later', retryAfterSecs: 60, reason: /another/ })
  })

  it('sends signs of life, and hears the answers', async () => {
    await using it = await openBot()
    await it.test.waitForSleep()
    const { heard } = it.test
    it.test.wake()
    await expect.poll(() => it.fake.pings).toBe(1)
    await expect.poll(() => it.test.heard).toBeGreaterThan(heard)
  })

  it('sends large files in pieces', async () => {
    await using it = await openBot()
    const bytes = randomBytes(1_200_000)
    const file = attachmentOf({ kind: 'file', name: 'Grüße.bin', mime: 'application/octet-stream', bytes })
    await it.stage.connection.send(it.stage.message('', { attachments: [file] }))
    expect(it.fake.sent[0]?.files[0]?.name).toBe('Grüße.bin')
    expect(Buffer.from(it.fake.sent[0]?.files[0]?.bytes ?? []).equals(bytes)).toBe(true)
  })

  it('reads no other address than one of the web', async () => {
    await using it = await openBot()
    const read = async () =>
      it.stage.connection.readAttachment?.({ url: 'file:///etc/passwd' }, AbortSignal.timeout(1000))
    await expect(read()).rejects.toThrow()
  })

  it('several messages at once get their own answers', async () => {
    await using it = await openBot()
    const texts = ['a', 'b', 'c', 'd']
    await Promise.all(texts.map((text) => it.stage.connection.send(it.stage.message(text))))
    expect(it.fake.sent.map(({ text }) => text).toSorted()).toEqual(texts)
  })
})

describe('an application', () => {
  it('proves its address', async () => {
    await using it = await openApp()
    expect(await it.stage.receiveWebhook(it.fake.verifyUrl())).toEqual({ status: 200, body: 'prove it' })
    expect((await it.stage.receiveWebhook(it.fake.verifyUrl({ time: 1 }))).status).toBe(401)
  })

  it('a callback that comes again is the same message', async () => {
    await using it = await openApp()
    const content = '<MsgType>text</MsgType><Content><![CDATA[a <b> & c]]></Content><MsgId>1</MsgId>'
    const request = it.fake.callback(it.fake.message(content))
    for (let attempt = 0; attempt < 2; attempt++) expect((await it.stage.receiveWebhook(request)).status).toBe(200)
    expect([it.test.deliveries, it.test.received.map(({ text }) => text)]).toEqual([2, ['a <b> & c']])
  })

  it('answers what is for another application, events, and what cannot be read, and leaves them', async () => {
    await using it = await openApp()
    const text = '<MsgType>text</MsgType><Content>x</Content><MsgId>1</MsgId>'
    const xmls = [
      it.fake.message(text, 7),
      it.fake.message(text, 1_000_002, 'wwanother'),
      it.fake.message('<MsgType>event</MsgType><Event>enter_agent</Event>'),
      '<xml><ToUserName>x</ToUserName></xml>',
      '<xml><unclosed></xml>',
      `<!DOCTYPE xml [<!ENTITY e "${'x'.repeat(100)}">]>${it.fake.message(text)}`,
    ]
    for (const xml of xmls) expect((await it.stage.receiveWebhook(it.fake.callback(xml))).status).toBe(200)
    expect(it.test.received).toEqual([])
  })

  it.each(['', 'nonsense', '{"Encrypt":"x"}', '<xml><Encrypt/></xml>', '<xml>'])(
    'refuses the body %s',
    async (body) => {
      await using it = await openApp()
      const request = it.fake.callback(it.fake.message(''))
      const { status } = await it.stage.receiveWebhook({ ...request, body: Buffer.from(body) })
      expect([400, 401]).toContain(status)
    },
  )

  it('a body that nobody signed costs no time', async () => {
    await using it = await openApp()
    const request = it.fake.callback(it.fake.message(''))
    const start = process.threadCpuUsage()
    for (const part of ['<a/>', '<?x?>', '<Encrypt>', '<Encrypt>AAAA']) {
      const body = Buffer.from(`<xml>${part.repeat(1_000_000 / part.length)}</xml>`)
      expect([400, 401]).toContain((await it.stage.receiveWebhook({ ...request, body })).status)
    }
    expect(process.threadCpuUsage(start).user / 1000).toBeLessThan(250)
  })

  it('shows no token, although it is a part of addresses that others may quote', async () => {
    await using it = await openApp()
    const { fetch } = it.test.link
    let quoted = ''
    Object.assign(it.test.link, {
      fetch: (async (url, request) => {
        quoted = String(url)
        it.test.nextAnswer = new Response(`no answer of ${quoted}`, { status: 502 })
        return fetch(url, request)
      }) satisfies typeof fetch,
    })
    const failure = await it.stage.failureOf(() => it.stage.connection.send(it.stage.message('hello')))
    const token = new URL(quoted).searchParams.get('access_token') ?? ''
    expect(token).not.toBe('')
    expect(String(failure)).toContain('no answer of')
    expect(String(failure)).not.toContain(token)
  })

  it('replaces a token that WeCom took back', async () => {
    await using it = await openApp()
    it.fake.revokeToken()
    await it.stage.connection.send(it.stage.message('hello'))
    expect([it.fake.sent.length, it.fake.issued]).toEqual([1, 2])
  })

  it('cannot write to somebody WeCom does not know, although the code is that of a success', async () => {
    await using it = await openApp()
    it.fake.unknownPeople.add('zhangsan')
    await expect(it.stage.connection.send(it.stage.message('hello'))).rejects.toMatchObject({
      reason: 'not_found',
      retry: 'never',
    })
  })

  it('writes to people only, and never to everybody', async () => {
    await using it = await openApp()
    for (const chatId of ['@all', 'user:@all', 'user:zhangsan|lisi'])
      await expect(it.stage.connection.send(it.stage.message('hello', { to: { chatId } }))).rejects.toMatchObject({
        retry: 'never',
      })
    expect(it.fake.sent).toEqual([])
  })

  it('tells a file that is gone from one with another content', async () => {
    await using it = await openApp()
    const read = async () => it.stage.connection.readAttachment?.({ media: 'gone' }, AbortSignal.timeout(5000))
    await expect(read()).rejects.toMatchObject({ retry: 'never', message: /40007/ })
  })

  it('keeps its connection alive', async () => {
    await using it = await openApp()
    await it.test.waitForSleep()
    const { heard } = it.test
    it.test.wake()
    await expect.poll(() => it.test.heard).toBeGreaterThan(heard)
  })
})

describe('configuration', () => {
  const app = { mode: 'app', token: 's', corp_id: 'ww', agent_id: 1, callback_token: 't', encoding_aes_key: AES_KEY }

  it('has what the mode needs', () => {
    expect(v.safeParse(WeComConfig, { token: 's', bot_id: 'b' }).success).toBe(true)
    expect(v.safeParse(WeComConfig, { token: 's' }).success).toBe(false)
    expect(v.safeParse(WeComConfig, app).success).toBe(true)
  })

  it.each(['callback_token', 'encoding_aes_key', 'corp_id', 'agent_id'])('lacks nothing: %s', (name) => {
    expect(v.safeParse(WeComConfig, { ...app, [name]: undefined }).success).toBe(false)
  })
})

describe('encryption', () => {
  it.each([0, 1, 31, 32, 33, 100_000])('reads a file of %i bytes, in whatever pieces it comes', async (size) => {
    const key = randomBytes(32)
    const bytes = randomBytes(size)
    const encrypted = encryptForWeCom(key, bytes)
    for (const pieceSize of [7, 16, 4096]) {
      const pieces = async function* () {
        for (let at = 0; at < encrypted.length; at += pieceSize) yield encrypted.subarray(at, at + pieceSize)
      }
      const chunks: Uint8Array[] = []
      for await (const chunk of decryptFile(pieces(), key.toString('base64'))) chunks.push(chunk)
      expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
    }
  })

  // With some keys the last byte alone looks like a padding.
  it.each(Array.from({ length: 40 }, (_, key) => key + 2))(
    'refuses a file that was encrypted with key %i',
    async (key) => {
      const content = async function* () {
        yield encryptForWeCom(Buffer.alloc(32, key), Buffer.from('secret'))
      }
      const read = async () => {
        for await (const _ of decryptFile(content(), Buffer.alloc(32, 1).toString('base64'))) continue
      }
      await expect(read()).rejects.toThrow()
    },
  )

  it.each(['', 'AAAA', Buffer.alloc(64).toString('base64'), 'ä'])('refuses the text %s', (encrypted) => {
    expect(() => decryptMessage(AES_KEY, encrypted)).toThrow()
  })

  it('refuses a length that is too great', () => {
    const content = Buffer.concat([Buffer.alloc(16), Buffer.from([255, 255, 255, 255]), Buffer.from('x')])
    const sealed = encryptForWeCom(Buffer.from(`${AES_KEY}=`, 'base64'), content).toString('base64')
    expect(() => decryptMessage(AES_KEY, sealed)).toThrow('wrong length')
    expect(decryptMessage(AES_KEY, sealForWeCom(AES_KEY, 'Grüße', 'ww'))).toEqual({ text: 'Grüße', id: 'ww' })
  })
})

describe('XML', () => {
  it.each([
    '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
    '<!ENTITY x SYSTEM "file:///etc/passwd"><a/>',
    `${'<a>'.repeat(50)}x${'</a>'.repeat(50)}`,
    '<a><b></a>',
    'x',
  ])('refuses %s', (text) => {
    expect(() => parseXml(text)).toThrow()
  })

  it('reads texts as they are', () => {
    const text = '<xml><a><![CDATA[ <b> &amp; ]]></a><n>007</n><e>&lt;</e></xml>'
    expect(parseXml(text)).toEqual({ xml: { a: ' <b> &amp; ', n: '007', e: '&lt;' } })
  })
})

const botMessage = {
  msgid: 'm',
  aibotid: 'b',
  chatid: 'g',
  chattype: 'group',
  from: { userid: 'zhangsan' },
  create_time: 1_763_640_000,
  msgtype: 'mixed',
  text: { content: 'x' },
  image: { url: 'https://x.test', aeskey: 'k' },
  mixed: { msg_item: [{ msgtype: 'text', text: { content: '@Helper hello' } }, { image: { url: 'u', aeskey: 'k' } }] },
}
const appMessage = {
  ToUserName: 'ww',
  FromUserName: 'zhangsan',
  CreateTime: '1763640000',
  MsgType: 'location',
  MsgId: '1',
  AgentID: '1',
  Label: 'Pier',
  Location_X: '53.5',
  Location_Y: '9.9',
}
const decodeBot = (more: object) => decodeBotMessage(v.parse(BotMessage, { ...botMessage, ...more }), 'req', 0)
const decodeApp = (more: object) => decodeAppMessage(v.parse(AppMessage, { ...appMessage, ...more }))

describe('messages', () => {
  it.each([
    ['texts and pictures', {}, { text: 'hello', attachments: [{ kind: 'image', reference: { url: 'u', key: 'k' } }] }],
    ['a voice message', { msgtype: 'voice', voice: { content: 'open the gate' } }, { text: 'open the gate' }],
    [
      'a file',
      { msgtype: 'file', file: { url: 'u', filename: 'a.pdf' } },
      { attachments: [{ kind: 'file', name: 'a.pdf', mime: 'application/pdf' }] },
    ],
    [
      'a direct one with an address',
      { chattype: 'single', msgtype: 'text', text: { content: '@ada hi' } },
      { text: '@ada hi' },
    ],
    ['a person with marks of direction', { from: { userid: '\u202ex' } }, { sender: { id: '\u202ex' } }],
    ['one without a time', { create_time: null }, { sentAt: '1970-01-01T00:00:00.000Z' }],
    ['an address that is too long', { msgtype: 'image', image: { url: 'x'.repeat(4000) } }, { attachments: [] }],
  ])('reads %s of a robot', (_, more, expected) => {
    expect(decodeBot(more)).toMatchObject(expected)
  })

  it.each([
    ['a location', {}, { text: 'Pier\nLocation: 53.5, 9.9', sentAt: '2025-11-20T12:00:00.000Z' }],
    ['a link', { MsgType: 'link', Title: 'News', Url: 'https://x.test' }, { text: 'News\nhttps://x.test' }],
    ['a voice message', { MsgType: 'voice', MediaId: 'm', Format: 'amr' }, { attachments: [{ name: 'voice.amr' }] }],
    ['a video', { MsgType: 'video', MediaId: 'm' }, { attachments: [{ kind: 'video', reference: { media: 'm' } }] }],
  ])('reads %s of an application', (_, more, expected) => {
    expect(decodeApp(more)).toMatchObject(expected)
  })

  it('leaves events, and what has no id', () => {
    expect(decodeApp({ MsgType: 'event' })).toBeUndefined()
    expect(decodeApp({ MsgId: '' })).toBeUndefined()
  })

  it('mentions nobody', () => {
    expect(encodeMarkdown('<@all> and <@zhangsan>, a < b').content).toBe('<\u200b@all> and <\u200b@zhangsan>, a < b')
  })

  it.each([
    [-1, { reason: 'server_error', retry: 'later' }],
    [42_001, { reason: 'auth', retry: 'later' }],
    [60_020, { reason: 'auth', retry: 'never' }],
    [45_033, { reason: 'rate_limit', retry: 'later' }],
    [40_058, { reason: 'invalid_request', retry: 'never', message: '40058 no' }],
    [301_002, { reason: 'auth', retry: 'never' }],
    [846_605, { reason: 'invalid_request', retry: 'never' }],
    [6000, { reason: 'server_error', retry: 'later' }],
    [-2, { reason: 'server_error', retry: 'later' }],
    [850_001, { reason: 'server_error', retry: 'later' }],
  ])('understands the code %i with status 200', (errcode, expected) => {
    expect(
      findError({ status: 200, ok: true, body: { errcode, errmsg: 'no' }, header: () => undefined }),
    ).toMatchObject(expected)
  })
})

testHostileInput(
  'wecom, a robot',
  botMessage,
  parsed(BotMessage, (message) => decodeBotMessage(message, 'req', 0)),
)
testHostileInput('wecom, an application', appMessage, parsed(AppMessage, decodeAppMessage))
