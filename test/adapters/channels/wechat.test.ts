import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { UpstreamFailure } from 'svc/sdk'
import type { QrStep } from 'svc/channels'
import adapter from '../../../adapters/channels/wechat/adapter.ts'
import { openEnvelope } from '../../../adapters/channels/wechat/account-crypto.ts'
import { decodeAccountMessage } from '../../../adapters/channels/wechat/account-decode.ts'
import * as accountWire from '../../../adapters/channels/wechat/account-wire.ts'
import { readXml } from '../../../adapters/channels/wechat/account-xml.ts'
import type { BotApi } from '../../../adapters/channels/wechat/bot-api.ts'
import { BotContexts } from '../../../adapters/channels/wechat/bot-contexts.ts'
import { decodeBotMessage } from '../../../adapters/channels/wechat/bot-decode.ts'
import { allowedBase } from '../../../adapters/channels/wechat/bot-session.ts'
import { BotUpdates } from '../../../adapters/channels/wechat/bot-updates.ts'
import * as botWire from '../../../adapters/channels/wechat/bot-wire.ts'
import type { WeChatConfig } from '../../../adapters/channels/wechat/config.ts'
import { bytesOf } from '../../contract/channel-checks/check.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { TestLink } from '../../support/platforms/link.ts'
import { FakeWeChatAccount } from '../../support/platforms/wechat-account.ts'
import { FakeWeChat } from '../../support/platforms/wechat.ts'

async function openBot(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeWeChat.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
async function openAccount() {
  const fake = await FakeWeChatAccount.start()
  const stage = new ChannelStage(adapter, fake)
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const picture = { kind: 'image' as const, name: 'a.png', mime: 'image/png', bytes: Buffer.from('picture') }

/** The steps of a sign-in, which goes on after each of its pauses. */
async function signIn(link: TestLink): Promise<readonly QrStep[]> {
  const steps: QrStep[] = []
  const iterator = adapter.signIn?.(link.link)[Symbol.asyncIterator]()
  for (let next = iterator?.next(); next;) {
    const waking = link.waitForSleep().then(() => 'asleep' as const)
    const result = await Promise.race([next, waking])
    if (result === 'asleep') link.wake()
    else if (result.done) return steps
    else {
      steps.push(result.value)
      next = iterator?.next()
    }
  }
  return steps
}

describe('wechat, signing in', () => {
  it('is pending, scanned and authenticated, and opens with what it gave', async () => {
    const fake = await FakeWeChat.start()
    fake.codeStates.push({ status: 'wait' }, { status: 'scaned' }, { status: 'scaned' }, fake.confirmed)
    const { token: _, ...config } = fake.config
    await using stage = new ChannelStage(adapter, fake, config)
    const error = await stage.failureOf(() => stage.open())
    expect(error).toMatchObject({ reason: 'auth', retry: 'never' })
    const steps = await signIn(stage.test)
    expect(steps.map(({ status }) => status)).toEqual(['pending', 'scanned', 'authenticated'])
    expect(steps[0]).toMatchObject({ payload: 'https://liteapp.weixin.qq.com/q/code-1', expiresAt: expect.any(String) })
    expect(stage.test.secrets.get('bot-session')).toContain(fake.secrets[0])
    expect([...stage.test.state.values()].join()).not.toContain(fake.secrets[0])
    await stage.open()
    await fake.deliver({ text: 'hello' })
    expect((await stage.test.waitForReceived(1))[0]?.text).toBe('hello')
    expect(await adapter.probe(stage.test.link)).toEqual({ account: '8d8d8d@im.bot' })
  })

  it('shows another code when one has expired, and gives up after three', async () => {
    await using fake = await FakeWeChat.start()
    fake.codeStates.push({ status: 'expired' })
    await using link = new TestLink(adapter, fake.config)
    await expect(signIn(link)).rejects.toThrow('nobody scanned the QR code in time')
    expect(fake.codes).toEqual(['code-1', 'code-2', 'code-3'])
  })

  it.each([
    [{ status: 'need_verifycode' }, 'asks for a number'],
    [{ status: 'binded_redirect' }, 'linked already'],
    [{ status: 'scaned_but_redirect', redirect_host: 'evil.test' }, 'evil.test'],
    [{ status: 'confirmed', ilink_bot_id: 'b' }, 'without a token'],
    [{ status: 'confirmed', ilink_bot_id: 'b', bot_token: 't', baseurl: 'https://evil.test' }, 'evil.test'],
  ])('says why it cannot go on: %s', async (state, why) => {
    await using fake = await FakeWeChat.start()
    fake.codeStates.push(state)
    await using link = new TestLink(adapter, fake.config)
    await expect(signIn(link)).rejects.toThrow(why)
    expect(link.secrets.size).toBe(0)
  })

  it('sends the token to no host but those of WeChat and those that the operator names', () => {
    const config = { base_url: 'http://127.0.0.1:7777', api_hosts: ['bot.example.org'] } as unknown as WeChatConfig
    const good = ['https://ilinkai.weixin.qq.com', 'https://bot.example.org/', 'http://127.0.0.1:7777']
    expect(good.map((url) => allowedBase(url, config))).toEqual(good.map((url) => url.replace(/\/$/, '')))
    const bad = [
      'http://ilinkai.weixin.qq.com',
      'https://evilweixin.qq.com',
      'https://weixin.qq.com.evil.test',
      'https://a@ilinkai.weixin.qq.com',
      'http://127.0.0.1:22',
      'https://',
      'x',
    ]
    expect(bad.map((url) => allowedBase(url, config))).toEqual(bad.map(() => undefined))
  })

  it('is not for an official account', async () => {
    await using fake = await FakeWeChatAccount.start()
    await using link = new TestLink(adapter, fake.config)
    expect(['bot', 'official_account'].map((mode) => adapter.usesSignIn?.({ mode }))).toEqual([true, false])
    await expect(signIn(link)).rejects.toThrow('set mode = "bot"')
  })
})

describe('wechat, a bot', () => {
  it('wants another QR code when the session has ended', async () => {
    await using it = await openBot()
    await it.stage.test.link.secrets.write('bot-session', 'kept')
    await it.fake.expire()
    expect(await it.stage.connection.closed).toMatchObject({
      retry: 'never',
      reason: expect.stringContaining('QR code'),
    })
    expect(it.stage.test.secrets.get('bot-session')).toBe('')
  })

  it('answers with the context of the newest message, also after a restart', async () => {
    await using it = await openBot()
    for (const text of ['one', 'two']) await it.fake.deliver({ text })
    await it.stage.test.waitForReceived(2)
    await it.stage.connection.send(it.stage.message('first'))
    await it.stage.reopen()
    await it.stage.connection.send(it.stage.message('second'))
    expect(it.fake.sent).toHaveLength(2)
    expect(it.fake.violations).toEqual([])
  })

  it('reads nothing from before the first start, of other bots and of groups, and goes on after what it cannot read', async () => {
    await using it = await openBot()
    const now = Date.now()
    const message = (text: string, more: object = {}) => ({
      from_user_id: it.fake.person,
      message_type: 1,
      message_id: 9_000_000 + text.length,
      create_time_ms: now,
      item_list: [{ type: 1, text_item: { text } }],
      ...more,
    })
    it.fake.deliverRaw(message('old', { create_time_ms: now - 3_600_000 }))
    it.fake.deliverRaw(message('bot.', { from_user_id: 'x@im.bot' }))
    it.fake.deliverRaw(message('own..', { message_type: 2 }))
    it.fake.deliverRaw(message('group.', { group_id: 'g' }))
    it.fake.deliverRaw({ from_user_id: 5 })
    it.fake.deliverRaw(message('real...'))
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['real...'])
    expect(it.stage.test.logged.join()).toContain('a form that cannot be read')
  })

  it('takes a poll that is not answered for one without messages, and a third one for a lost connection', async () => {
    await using link = new TestLink(adapter, { mode: 'bot' })
    let polls = 0
    const api = {
      updates: async () => {
        polls++
        throw new UpstreamFailure('wechat', 'wechat did not answer in time', { reason: 'timeout', retry: 'later' })
      },
    } as unknown as BotApi
    const background = await new BotUpdates(link.link, api, new BotContexts(link.link)).open()
    expect(await background.closed).toMatchObject({ retry: 'later', reason: 'wechat did not answer in time' })
    expect(polls).toBe(3)
  })

  it('acknowledges a message with the poll after it', async () => {
    await using it = await openBot()
    await it.fake.deliver({ text: 'one' })
    await it.stage.test.waitForReceived(1)
    await it.fake.waitForListener()
    expect(it.stage.test.state.get('bot-cursor')).toBe('position-1')
  })

  it('uploads a file once, however often its message is tried', async () => {
    await using it = await openBot()
    const message = it.stage.message('look', { attachments: [attachmentOf(picture)] })
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(message)).rejects.toMatchObject({ retry: 'later' })
    await it.stage.connection.send(message)
    expect(it.fake.sent.map(({ text, files }) => [text, files.length])).toEqual([
      ['look', 0],
      ['look', 0],
      ['', 1],
    ])
  })

  it('reads a file of its own host alone, and says when the key is another', async () => {
    await using it = await openBot()
    await it.fake.deliver({ text: '', files: [picture] })
    const [message] = await it.stage.test.waitForReceived(1)
    const reference = message?.attachments[0]?.reference ?? {}
    const read = async (more: object) => {
      const content = await it.stage.connection.readAttachment?.({ ...reference, ...more }, AbortSignal.timeout(5000))
      return bytesOf(content ?? (async function* () {})())
    }
    expect(String(await read({}))).toBe('picture')
    await expect(read({ key: '00'.repeat(16) })).rejects.toThrow('cannot be decrypted')
  })

  it('takes an empty answer for success, and any other text for none', () => {
    const bodies = [{ ret: 0 }, {}, { ret: 0, errmsg: '', more: 1 }, { maintenance: true }, { ret: 3 }, 'ok', null]
    expect(bodies.map((body) => v.is(botWire.Done, body))).toEqual([true, true, true, false, false, false, false])
  })

  it('reads what was said in a voice message, and what is quoted', () => {
    const read = (item: object) =>
      decodeBotMessage(v.parse(botWire.Message, { from_user_id: 'a', message_id: 1, item_list: [item] }), 0)
    expect(read({ type: 3, voice_item: { text: 'said', media: { encrypt_query_param: 'p' } } })).toMatchObject({
      text: 'said',
      attachments: [{ kind: 'audio', mime: 'audio/silk' }],
    })
    const quoted = { ref_msg: { message_item: { type: 1, text_item: { text: 'one\ntwo' } } } }
    expect(read({ type: 1, text_item: { text: 'yes' }, ...quoted })?.text).toBe('> one\n> two\nyes')
  })

  it('tells messages apart whose number is too large for JSON', () => {
    const read = (more: object) =>
      decodeBotMessage(
        v.parse(botWire.Message, { from_user_id: 'a', item_list: [{ type: 1, text_item: { text: 'x' } }], ...more }),
        0,
      )?.id
    expect(read({ message_id: 7_453_892_374_981_237_000, seq: 5 })).not.toBe(
      read({ message_id: 7_453_892_374_981_237_000, seq: 6 }),
    )
    expect(read({ client_id: 'c' })).toBe('c')
    expect(read({})).toBeUndefined()
  })
})

describe('wechat, an official account', () => {
  it('needs all secrets of the safe mode', () => {
    const config = {
      mode: 'official_account',
      token: 's',
      app_id: 'wx1',
      webhook_token: 'abc',
      aes_key: 'a'.repeat(43),
    }
    expect(v.is(adapter.config, config)).toBe(true)
    for (const name of ['token', 'app_id', 'webhook_token', 'aes_key'])
      expect(v.is(adapter.config, { ...config, [name]: undefined })).toBe(false)
    expect(v.is(adapter.config, { ...config, aes_key: 'short' })).toBe(false)
  })

  it('answers the check of its address', async () => {
    await using it = await openAccount()
    expect(await it.stage.receiveWebhook(it.fake.handshake())).toEqual({ status: 200, body: '4375120948345356249' })
  })

  it('leaves out events and messages for another account, and refuses what it cannot decrypt or is too large', async () => {
    await using it = await openAccount()
    const { fake, stage } = it
    const hello = fake.messageOf('<MsgType>text</MsgType><Content>hello</Content><MsgId>1</MsgId>')
    const event = fake.messageOf('<MsgType>event</MsgType><Event>subscribe</Event>')
    for (const request of [fake.signed(hello, { appId: 'wxanother' }), fake.signed(event), fake.signed('no XML <')])
      expect(await stage.receiveWebhook(request)).toEqual({ status: 200, body: 'success' })
    const large = { ...fake.signed(hello), body: Buffer.alloc(300_000, 'a') }
    for (const request of [fake.signed(hello, { key: 'b'.repeat(43) }), large])
      expect((await stage.receiveWebhook(request)).status).toBe(400)
    expect(stage.test.received).toEqual([])
    expect((await stage.receiveWebhook(fake.signed(hello))).status).toBe(200)
    expect(stage.test.received).toMatchObject([{ id: '1', text: 'hello' }])
  })

  it('asks for another token when its own was replaced, once, and sends the message', async () => {
    await using it = await openAccount()
    it.fake.replaceToken()
    await it.stage.connection.send(it.stage.message('hi'))
    expect(it.fake.sent).toHaveLength(1)
    expect(it.stage.test.logged.join()).not.toContain(it.fake.tokens.at(-1))
  })

  it('takes tokens that are refused again and again for wrong credentials', async () => {
    await using it = await openAccount()
    it.stage.test.nextAnswer = Response.json({ errcode: 40_001, errmsg: 'invalid credential' })
    it.fake.refuseNext(42_001)
    await expect(it.stage.connection.send(it.stage.message('hi'))).rejects.toMatchObject({ reason: 'auth' })
  })

  it.each([
    [-1, 'overloaded', 'later'],
    [45_009, 'rate_limit', 'later'],
    [45_011, 'rate_limit', 'later'],
    [45_015, 'invalid_request', 'never'],
    [45_047, 'invalid_request', 'never'],
    [40_003, 'invalid_request', 'never'],
    [40_164, 'auth', 'never'],
  ] as const)('explains error %s', async (code, reason, retry) => {
    await using it = await openAccount()
    it.fake.refuseNext(code)
    await expect(it.stage.connection.send(it.stage.message('hi'))).rejects.toMatchObject({ reason, retry })
  })

  it('sends pictures, refuses other files before it sends anything, and reads what it was sent', async () => {
    await using it = await openAccount()
    const { connection } = it.stage
    await connection.send(it.stage.message('look', { attachments: [attachmentOf(picture)] }))
    expect(it.fake.sent.map(({ text, files }) => [text, files.length])).toEqual([
      ['look', 0],
      ['', 1],
    ])
    const notes = attachmentOf({ ...picture, kind: 'file', name: 'notes.txt', mime: 'text/plain' })
    const refused = it.stage.message('look', { attachments: [notes] })
    await expect(connection.send(refused)).rejects.toMatchObject({ retry: 'never' })
    expect(it.fake.sent).toHaveLength(2)
    await it.fake.deliver({ text: '', files: [picture] })
    const [message] = await it.stage.test.waitForReceived(1)
    const read = async (reference: object) =>
      bytesOf(
        (await connection.readAttachment?.({ ...reference }, AbortSignal.timeout(5000))) ?? (async function* () {})(),
      )
    expect(String(await read(message?.attachments[0]?.reference ?? {}))).toBe('picture')
    await expect(read({ media: 'gone' })).rejects.toThrow('invalid media_id')
  })

  it('reads a video from the address that comes instead of it, without the token', async () => {
    await using it = await openAccount()
    await it.fake.deliver({ text: '', files: [{ ...picture, kind: 'video', mime: 'video/mp4' }] })
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message?.attachments).toMatchObject([{ kind: 'video', mime: 'video/mp4' }])
    const reference = message?.attachments[0]?.reference ?? {}
    const content = await it.stage.connection.readAttachment?.(reference, AbortSignal.timeout(5000))
    expect(String(await bytesOf(content ?? (async function* () {})()))).toBe('picture')
    expect(it.fake.violations).toEqual([])
  })

  it('opens no envelope whose lengths are wrong', () => {
    const key = 'a'.repeat(43)
    for (const text of ['', 'AAAA', 'A'.repeat(43), Buffer.alloc(64).toString('base64'), 'no base64 !'])
      expect(openEnvelope(text, key)).toBeUndefined()
  })
})

const media = { encrypt_query_param: 'p', aes_key: Buffer.alloc(16).toString('base64') }
testHostileInput(
  'wechat, a bot',
  {
    from_user_id: 'ada@im.wechat',
    message_type: 1,
    message_id: 5,
    seq: 1,
    create_time_ms: 1_760_000_000_000,
    context_token: 'c',
    item_list: [
      {
        type: 1,
        text_item: { text: 'hi' },
        ref_msg: { title: 't', message_item: { type: 1, text_item: { text: 'q' } } },
      },
      { type: 2, image_item: { media, aeskey: '00'.repeat(16) } },
      { type: 3, voice_item: { media, encode_type: 7, text: 'said' } },
      { type: 4, file_item: { media, file_name: 'a.txt', len: '5' } },
      { type: 5, video_item: { media } },
    ],
  },
  parsed(botWire.Message, (message) => decodeBotMessage(message, 0)),
)
testHostileInput(
  'wechat, an official account',
  {
    FromUserName: 'ada',
    CreateTime: '1760000000',
    MsgType: 'voice',
    MsgId: '1',
    MediaId: 'm',
    Format: 'amr',
    Recognition: 'said',
    Label: 'l',
  },
  parsed(accountWire.Message, decodeAccountMessage),
)
testHostileInput('wechat, XML', { text: 'hi', type: 'text' }, (raw) => {
  const { text, type } = Object(raw) as Record<string, unknown>
  const xml = `<xml><FromUserName>a</FromUserName><CreateTime>1</CreateTime><MsgId>1</MsgId><MsgType>${String(type)}</MsgType><Content>${String(text)}</Content></xml>`
  const message = v.safeParse(accountWire.Message, readXml(xml))
  return message.success ? decodeAccountMessage(message.output) : undefined
})
