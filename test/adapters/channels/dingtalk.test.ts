import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/dingtalk/adapter.ts'
import { DingTalkConfig } from '../../../adapters/channels/dingtalk/config.ts'
import { decodeMessage } from '../../../adapters/channels/dingtalk/decode.ts'
import { findError, findSessionError } from '../../../adapters/channels/dingtalk/errors.ts'
import { Sessions } from '../../../adapters/channels/dingtalk/sessions.ts'
import { RobotMessage } from '../../../adapters/channels/dingtalk/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { startFakeDingTalk } from '../../support/platforms/dingtalk.ts'

async function openStage(options: { readonly webhook?: boolean } = {}) {
  const fake = await startFakeDingTalk(options)
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

const message = {
  msgId: 'msg1==',
  msgtype: 'text',
  createAt: 1_763_640_000_000,
  conversationType: '1',
  conversationId: 'cid1==',
  chatbotCorpId: 'dingcorp',
  chatbotUserId: 'bot',
  senderId: '$:LWCP_v1:$ada',
  senderStaffId: 'manager1234',
  senderNick: 'Ada',
  text: { content: ' hello ' },
}
const decoded = (more: object) => decodeMessage(v.parse(RobotMessage, { ...message, ...more }))

describe('Stream mode', () => {
  it('answers what is durable, and nothing before', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    await expect.poll(() => it.fake.acknowledged.length).toBe(1)
    it.test.isRefusing = true
    await it.fake.deliver({ text: 'two' })
    expect((await it.stage.connection.closed).retry).toBe('later')
    expect(it.fake.acknowledged).toHaveLength(1)
  })

  it('sends the data of a ping back', async () => {
    await using it = await openStage()
    it.fake.system('ping', { opaque: 'x' })
    await expect.poll(() => it.fake.systemAnswers).toMatchObject([{ code: 200, data: '{"opaque":"x"}' }])
  })

  it('leaves when DingTalk is about to close, after it answered what came before, with a fresh ticket next', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'before' })
    it.fake.system('disconnect', { reason: 'to be closed' })
    expect((await it.stage.connection.closed).retry).toBe('later')
    expect(it.fake.acknowledged).toHaveLength(1)
    await it.stage.reopen()
    await it.fake.deliver({ text: 'after' })
    expect((await it.test.waitForReceived(2)).map(({ text }) => text)).toEqual(['before', 'after'])
  })

  it('answers a message to another robot, and one in another form, so that they do not come again', async () => {
    await using it = await openStage()
    await it.fake.emit({ robotCode: 'another' })
    await it.fake.emit({ msgId: 7 })
    await it.fake.deliver({ text: 'a real one' })
    await expect.poll(() => it.fake.acknowledged.length).toBe(3)
    expect(it.test.received.map(({ text }) => text)).toEqual(['a real one'])
    expect(it.test.logged.join('\n')).toMatch(/another robot[^]*cannot be read/)
  })

  it('hears the pongs of a quiet socket', async () => {
    await using it = await openStage()
    await it.test.waitForSleep()
    const { heard } = it.test
    it.test.wake()
    await expect.poll(() => it.test.heard).toBeGreaterThan(heard)
  })
})

describe('the webhook', () => {
  it('takes a request of an hour, and none that is older', async () => {
    await using it = await openStage({ webhook: true })
    const status = async (age: number) =>
      (await it.stage.receiveWebhook(it.fake.request(message, { time: Date.now() - age }))).status
    expect([await status(3_500_000), await status(3_700_000)]).toEqual([200, 401])
    expect(it.test.received).toHaveLength(1)
  })

  it('a request that comes again is the same message', async () => {
    await using it = await openStage({ webhook: true })
    const request = it.fake.request(message)
    for (let attempt = 0; attempt < 2; attempt++) await it.stage.receiveWebhook(request)
    expect([it.test.deliveries, it.test.received.length]).toEqual([2, 1])
  })

  it('answers a message to another robot, and leaves it', async () => {
    await using it = await openStage({ webhook: true })
    expect((await it.stage.receiveWebhook(it.fake.request({ ...message, robotCode: 'another' }))).status).toBe(200)
    expect(it.test.received).toEqual([])
  })

  it('refuses a body that is not JSON, and another method', async () => {
    await using it = await openStage({ webhook: true })
    const request = it.fake.request(message)
    expect((await it.stage.receiveWebhook({ ...request, body: Buffer.from('x') })).status).toBe(400)
    expect((await it.stage.receiveWebhook({ ...request, method: 'GET' })).status).toBe(405)
  })

  it('is refused in Stream mode', async () => {
    await using it = await openStage()
    expect((await it.stage.receiveWebhook(it.fake.request(message))).status).toBe(401)
  })

  it('keeps the connection alive', async () => {
    await using it = await openStage({ webhook: true })
    await it.test.waitForSleep()
    const { heard } = it.test
    it.test.wake()
    await expect.poll(() => it.test.heard).toBeGreaterThan(heard)
  })

  it('cannot be configured without the secret', () => {
    expect(v.safeParse(DingTalkConfig, { app_key: 'ding', token: '', mode: 'webhook' }).success).toBe(false)
  })
})

describe('answers', () => {
  it('go by the session of the message, as long as it holds', async () => {
    await using it = await openStage()
    it.fake.sessionMs = 5_400_000
    await it.fake.deliver({ text: 'a question' })
    await it.test.waitForReceived(1)
    expect(await it.stage.connection.send(it.stage.message('an answer'))).toEqual({ id: '' })
    it.fake.sessionMs = 30_000
    await it.fake.deliver({ text: 'another' })
    await it.test.waitForReceived(2)
    await it.stage.connection.send(it.stage.message('an answer'))
    expect(it.fake.ways).toEqual(['session', 'robot'])
  })

  it('go the other way when the session holds no more', async () => {
    await using it = await openStage()
    it.fake.sessionMs = 5_400_000
    await it.fake.deliver({ text: 'a question' })
    await it.test.waitForReceived(1)
    it.fake.sessionError = { errcode: 300_001, errmsg: 'session 不存在' }
    for (const text of ['one', 'two']) await it.stage.connection.send(it.stage.message(text))
    expect(it.fake.ways).toEqual(['robot', 'robot'])
  })

  it('wait when the session has a limit', async () => {
    await using it = await openStage()
    it.fake.sessionMs = 5_400_000
    await it.fake.deliver({ text: 'a question' })
    await it.test.waitForReceived(1)
    it.fake.sessionError = { errcode: 130_101, errmsg: 'send too fast' }
    const failure = it.stage.connection.send(it.stage.message('an answer'))
    await expect(failure).rejects.toMatchObject({ reason: 'rate_limit', retry: 'later' })
    await it.stage.connection.send(it.stage.message('an answer'))
    expect(it.fake.ways).toEqual(['session'])
  })

  it('never tell the address of a session, in logs, states or failures', async () => {
    await using it = await openStage()
    it.fake.sessionMs = 5_400_000
    await it.fake.deliver({ text: 'a question' })
    await it.test.waitForReceived(1)
    it.fake.sessionError = { errcode: -1, errmsg: 'system busy' }
    const failure: unknown = await it.stage.connection.send(it.stage.message('x')).catch((thrown: unknown) => thrown)
    const output = [...it.test.logged, ...it.test.state.values(), JSON.stringify(it.test.received), String(failure)]
    expect(output.join('\n')).not.toContain('fake-session')
    expect(failure).toMatchObject({ retry: 'later' })
  })

  it.each([
    ['https://oapi.dingtalk.com/robot/sendBySession?session=x', true],
    ['http://127.0.0.1:1/robot/sendBySession?session=x', true],
    ['http://oapi.dingtalk.com/robot/sendBySession', false],
    ['https://oapi.dingtalk.com.example.org/', false],
    ['https://evildingtalk.com/', false],
    ['https://dingtalk.com@example.org/', false],
    ['http://127.0.0.1:2/', false],
    ['nonsense', false],
  ])('go to %s: %s', (url, isUsed) => {
    const logged: unknown[] = []
    const log = { warn: (text: unknown) => logged.push(text) }
    const config = { base_url: 'http://127.0.0.1:1' }
    const sessions = new Sessions({ now: () => 0, config, log } as never)
    const raw = { ...message, sessionWebhook: url, sessionWebhookExpiredTime: 5_400_000 }
    sessions.note('chat', v.parse(RobotMessage, raw))
    expect(sessions.find('chat')).toBe(isUsed ? url : undefined)
    expect(logged).toHaveLength(isUsed ? 0 : 1)
  })

  it('to somebody the robot may not write to fail, although the status is 200', async () => {
    await using it = await openStage()
    it.fake.unknownPeople.add('manager1234')
    const send = () => it.stage.connection.send(it.stage.message('hello'))
    await expect(send()).rejects.toMatchObject({ reason: 'not_found', retry: 'never' })
    it.fake.unknownPeople.clear()
    it.fake.limitedPeople.add('manager1234')
    await expect(send()).rejects.toMatchObject({ reason: 'rate_limit', retry: 'later' })
  })

  it('replace a token that DingTalk took back', async () => {
    await using it = await openStage()
    it.fake.revokeToken()
    await it.stage.connection.send(it.stage.message('hello'))
    expect([it.fake.sent.length, it.fake.issued]).toEqual([1, 2])
  })

  it('have a title of one line, also where there is no text for one', async () => {
    await using it = await openStage()
    for (const plainText of ['Grüße\nzweite Zeile', '😀'.repeat(200), ' ']) {
      const outgoing = { ...it.stage.message('x'), plainText }
      await it.stage.connection.send(outgoing)
    }
    expect(it.fake.sent).toHaveLength(3)
  })
})

describe('messages', () => {
  it.each([
    ['a direct one', {}, { chat: { id: 'user:manager1234', kind: 'direct', guildId: 'dingcorp' }, mentionsBot: true }],
    [
      'one in a group',
      { conversationType: '2', conversationTitle: 'Harbour', isInAtList: true },
      { chat: { id: 'cid1==', kind: 'group', title: 'Harbour' }, text: 'hello', mentionsBot: true },
    ],
    ['one in a group to somebody else', { conversationType: '2' }, { mentionsBot: false }],
    [
      'somebody of another company',
      { senderStaffId: '' },
      { sender: { id: '$:LWCP_v1:$ada' }, chat: { id: 'cid1==' } },
    ],
    ['a name with marks of direction', { senderNick: '\u202eadA' }, { sender: { name: '\u202eadA' } }],
    ['somebody without a name', { senderNick: '' }, { sender: { name: 'manager1234' } }],
    ['a time in a text', { createAt: '1763640000000' }, { sentAt: '2025-11-20T12:00:00.000Z' }],
    [
      'a voice message with what was said',
      { msgtype: 'audio', content: { downloadCode: 'c', recognition: 'open the gate' } },
      { text: 'open the gate', attachments: [{ kind: 'audio', reference: { code: 'c' } }] },
    ],
    [
      'a video',
      { msgtype: 'video', content: { downloadCode: 'c', videoType: 'mp4' } },
      { attachments: [{ kind: 'video', name: 'video.mp4' }] },
    ],
    [
      'a rich text',
      {
        msgtype: 'richText',
        content: { richText: [{ text: 'look: ' }, { type: 'picture', downloadCode: 'c' }, 7, { text: 'this' }] },
      },
      { text: 'look: this', attachments: [{ kind: 'image', reference: { code: 'c' } }] },
    ],
  ])('reads %s', (_, more, expected) => {
    expect(decoded(more)).toMatchObject(expected)
  })

  it.each([
    ['of the robot', { senderId: 'bot' }],
    ['of an unknown type in a group', { conversationType: '2', msgtype: 'chatRecord' }],
  ])('skips one %s', (_, more) => {
    expect(decoded(more)).toBeUndefined()
  })

  it.each([
    ['InvalidAuthentication', { reason: 'auth', retry: 'later' }],
    ['invalidClientIdOrSecret', { reason: 'auth', retry: 'never' }],
    ['Forbidden.AccessDenied.QpmLimitForAppkeyAndApi', { reason: 'rate_limit', retry: 'later' }],
    ['robot.not.exist', { message: 'robot.not.exist no' }],
  ])('understands the error %s', (code, expected) => {
    const answer = { status: 400, ok: false, body: { code, message: 'no' }, header: () => undefined }
    expect(findError(answer)).toMatchObject(expected)
  })

  it('finds the error of a session, and none in a success', () => {
    const answer = (errcode: number) => ({ status: 200, ok: true, body: { errcode }, header: () => undefined })
    expect(findSessionError(answer(-1))).toMatchObject({ reason: 'server_error', retry: 'later' })
    expect(findSessionError(answer(460_101))).toEqual({ message: '460101' })
    expect(findSessionError(answer(0))).toBeUndefined()
  })
})

testHostileInput(
  'dingtalk',
  {
    ...message,
    msgtype: 'richText',
    conversationTitle: 'x',
    isInAtList: true,
    sessionWebhook: 'https://oapi.dingtalk.com/x',
    sessionWebhookExpiredTime: 1,
    content: { downloadCode: 'c', fileName: 'n', richText: [{ text: 'hi' }, { type: 'picture', downloadCode: 'c' }] },
  },
  parsed(RobotMessage, decodeMessage),
)
testHostileInput('dingtalk, a text', message, parsed(RobotMessage, decodeMessage))
