import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import * as v from 'valibot'
import adapter from '../../../adapters/channels/webex/adapter.ts'
import { decodeAction, decodeMessage } from '../../../adapters/channels/webex/decode.ts'
import { encodeMessage } from '../../../adapters/channels/webex/encode.ts'
import { findError } from '../../../adapters/channels/webex/errors.ts'
import { fileNameOf } from '../../../adapters/channels/webex/file-name.ts'
import { Action, Message } from '../../../adapters/channels/webex/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { PICTURE } from '../../contract/channel-checks/check.ts'
import { checkMessage, parsed, testHostileInput } from '../../support/hostile-input.ts'
import { BOT, FakeWebex } from '../../support/platforms/webex.ts'

async function openStage(options: { readonly bot?: boolean } = {}) {
  const fake = await FakeWebex.start(options)
  const stage = new ChannelStage(adapter, fake)
  await stage.open()
  return {
    fake,
    stage,
    texts: () => stage.test.received.map(({ text }) => text),
    [Symbol.asyncDispose]: async () => {
      await stage[Symbol.asyncDispose]()
      expect(fake.violations).toEqual([])
    },
  }
}

describe('webex: webhooks', () => {
  it('registers them once, and sets right what is registered', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    const [first] = fake.webhooks
    Object.assign(first!, { status: 'inactive', secret: 'old', targetUrl: 'https://old.test/' })
    await stage.reopen()
    expect(fake.webhooks).toHaveLength(3)
    expect(first).toMatchObject({
      status: 'active',
      secret: fake.config.webhook_secret,
      targetUrl: fake.config.webhook_url,
    })
  })

  it('switches on now and then what Webex switched off', async () => {
    await using it = await openStage()
    const [first] = it.fake.webhooks
    first!.status = 'inactive'
    await it.stage.test.waitForSleep()
    const { heard } = it.stage.test
    it.stage.test.wake()
    await expect.poll(() => it.stage.test.heard).toBeGreaterThan(heard)
    expect(first?.status).toBe('active')
  })

  it('takes what another account registered, what the bot did, and what is gone, and receives none of it', async () => {
    await using it = await openStage()
    const { fake, stage } = it
    // By then what was missed is read.
    await stage.test.waitForSleep()
    const { id } = fake.write({ text: 'seen by another account' })
    await fake.notify('messages', 'created', id, { createdBy: 'somebody' })
    await fake.notify('messages', 'created', 'no-such-message')
    await fake.notify('messages', 'deleted', id)
    await fake.notify('attachmentActions', 'created', 'no-such-action')
    await fake.press('yes', 'a-space-that-the-bot-has-left')
    const old = fake.write({ text: 'old' }, { created: new Date(Date.now() - 90_000_000).toISOString() })
    await fake.notify('messages', 'created', old.id)
    expect((await stage.receiveWebhook(fake.signed({ resource: 'messages' }))).status).toBe(200)
    expect([stage.test.received, stage.errors]).toEqual([[], []])
    expect(stage.test.logged.join('\n')).toContain('a day ago')
  })

  it('knows who pressed a button by the address, as allow-lists do', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: '', button: 'yes' })
    const [press] = await it.stage.test.waitForReceived(1)
    expect(press).toMatchObject({ text: 'yes', sender: { name: 'Ada', handle: 'ada@webex.test' } })
  })

  it('takes the HMAC with SHA-1 that Webex documents, and no part of it', async () => {
    await using it = await openStage()
    const request = it.fake.signed({ id: 'x' })
    const expected = createHmac('sha1', it.fake.config.webhook_secret).update(request.body).digest('hex')
    expect(request.headers['x-spark-signature']).toBe(expected)
    expect((await it.stage.receiveWebhook(request)).status).toBe(200)
    const part = { ...request, headers: { 'x-spark-signature': expected.slice(1) } }
    expect((await it.stage.receiveWebhook(part)).status).toBe(401)
  })

  it('does not start without a secret that is long enough', () => {
    const config = { token: 't', webhook_url: 'https://svc.test', webhook_secret: 'x'.repeat(16) }
    expect(v.is(adapter.config, config)).toBe(true)
    for (const wrong of [{ webhook_secret: 'short' }, { webhook_secret: undefined }, { token: '' }])
      expect(v.is(adapter.config, { ...config, ...wrong })).toBe(false)
  })
})

describe('webex: what was missed', () => {
  it('is read in order when it is back, and nothing from before the first start', async () => {
    const fake = await FakeWebex.start({ bot: true })
    fake.write({ text: 'before the first start' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.deliver({ text: 'one' })
    await stage.connection[Symbol.asyncDispose]()
    for (let index = 0; index < 120; index++) {
      fake.write({ text: `direct ${index}` })
      if (index % 40 === 0) fake.write({ text: `group ${index}`, isGroup: true, mentionsBot: true })
      fake.write({ text: 'to nobody', isGroup: true })
    }
    await stage.reopen()
    const expected = Array.from({ length: 120 }, (_, index) =>
      index % 40 === 0 ? [`direct ${index}`, `group ${index}`] : [`direct ${index}`],
    ).flat()
    expect((await stage.test.waitForReceived(1 + expected.length)).map(({ text }) => text)).toEqual([
      'one',
      ...expected,
    ])
    expect(fake.violations).toEqual([])
  })

  it('of another space is read though its time is not later, as what was refused while the account opened', async () => {
    const fake = await FakeWebex.start({ bot: true })
    const created = new Date().toISOString()
    fake.write({ text: 'history' }, { created: new Date(Date.now() - 5000).toISOString() })
    await using stage = new ChannelStage(adapter, fake)
    const inGroup = { isGroup: true, mentionsBot: true }
    fake.onWebhook = () => {
      fake.onWebhook = undefined
      // Nobody is told: the host refuses notifications until the connection is open.
      fake.write({ text: 'first', ...inGroup }, { created })
    }
    await stage.open()
    await stage.test.waitForReceived(1)
    const told = fake.write({ text: 'told' }, { created })
    await fake.notify('messages', 'created', told.id)
    await stage.connection[Symbol.asyncDispose]()
    const earlier = new Date(Date.parse(created) - 1000).toISOString()
    fake.write({ text: 'earlier', ...inGroup }, { created: earlier })
    fake.write({ text: 'same', ...inGroup }, { created })
    await stage.reopen()
    expect((await stage.test.waitForReceived(4)).map(({ text }) => text)).toEqual(['first', 'told', 'earlier', 'same'])
    expect(fake.violations).toEqual([])
  })

  it('a message that could not be stored ends the connection, and the next one reads it', async () => {
    await using it = await openStage()
    await it.fake.deliver({ text: 'one' })
    it.stage.test.isRefusing = true
    await expect(it.fake.deliver({ text: 'two' })).rejects.toThrow('500')
    it.stage.test.isRefusing = false
    await it.fake.deliver({ text: 'three' })
    expect(await it.stage.connection.closed).toMatchObject({ retry: 'later', reason: 'the disk is full' })
    await it.stage.reopen()
    await it.stage.test.waitForReceived(3)
    expect(it.texts()).toEqual(['one', 'three', 'two'])
  })

  it('is read while the connection is open, and again if that did not come to its end', async () => {
    await using it = await openStage()
    await it.stage.connection[Symbol.asyncDispose]()
    it.fake.write({ text: 'missed' })
    const shown = Promise.withResolvers<void>()
    it.fake.listsWait = shown.promise
    await it.stage.reopen()
    await it.fake.deliver({ text: 'new' })
    await it.stage.reopen()
    shown.resolve()
    await it.stage.test.waitForReceived(2)
    expect(it.texts()).toEqual(['new', 'missed'])
  })

  it('a space that the bot was removed from does not end the account', async () => {
    await using it = await openStage()
    await it.stage.connection[Symbol.asyncDispose]()
    it.fake.write({ text: 'closed', isGroup: true, mentionsBot: true })
    it.fake.write({ text: 'read' })
    it.fake.closed.add(it.fake.chats.group)
    await it.stage.reopen()
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['read'])
  })

  it('one message that cannot be read does not hold up the others', async () => {
    await using it = await openStage()
    await it.stage.connection[Symbol.asyncDispose]()
    it.fake.write({ text: 'broken' }, { personId: '' })
    it.fake.write({ text: 'read' })
    await it.stage.reopen()
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['read'])
  })
})

describe('webex: files', () => {
  it('a file that is still scanned has no name yet, and may be read later', async () => {
    await using it = await openStage()
    it.fake.isScanning = true
    await it.fake.deliver({ text: 'look', files: [PICTURE] })
    const attachment = it.stage.test.received[0]?.attachments[0]
    expect(attachment).toMatchObject({ kind: 'file', name: 'file' })
    const read = async () =>
      it.stage.connection.readAttachment?.(attachment?.reference ?? {}, AbortSignal.timeout(5000))
    expect(await it.stage.failureOf(read)).toMatchObject({ retry: 'later', retryAfterSecs: 5 })
    it.fake.isScanning = false
    expect(await read()).toBeDefined()
  })

  it.each(['https://webexapis.com.example.org/a', 'https://example.org/v1/contents/1', 'http://169.254.169.254/', ''])(
    'does not send the token to %s',
    async (url) => {
      await using it = await openStage()
      const reading = it.stage.failureOf(async () =>
        it.stage.connection.readAttachment?.({ url }, AbortSignal.timeout(5000)),
      )
      expect(await reading).toMatchObject({ retry: 'never', message: expect.stringContaining('not read from') })
      const { id } = it.fake.write({ text: 'see' }, { files: [url] })
      await it.fake.notify('messages', 'created', id)
      expect(it.stage.test.received[0]?.attachments).toMatchObject([{ name: 'file' }])
    },
  )

  it.each([
    ['attachment; filename="a b.txt"', 'a b.txt'],
    [`attachment; filename="${Buffer.from('ä.txt').toString('latin1')}"`, 'ä.txt'],
    [`attachment; filename="x"; filename*=UTF-8''%C3%A4.txt`, 'ä.txt'],
    [`attachment; filename*=UTF-8''%ff`, '%ff'],
    ['attachment; filename=plain.txt', 'plain.txt'],
    [`attachment; filename*=UTF-8''gnp%E2%80%AE.exe`, 'gnp\u202E.exe'],
    ['inline', undefined],
    [undefined, undefined],
    [`attachment; filename="${'x'.repeat(5000)}"`, undefined],
  ])('reads the name of a file in %s', (header, name) => {
    expect(fileNameOf(header)).toBe(name)
  })
})

describe('webex: messages', () => {
  const base = {
    id: 'M1',
    roomId: 'R1',
    roomType: 'group',
    personId: 'P1',
    personEmail: 'ada@example.org',
    created: '2026-11-20T12:00:00.000Z',
  }
  const decode = (more: object) => decodeMessage(v.parse(Message, { ...base, ...more }), BOT)
  const mention = (name: string, id = BOT) =>
    `<spark-mention data-object-type="person" data-object-id="${id}">${name}</spark-mention>`

  it.each([
    [
      'a mention of the bot by its first name',
      { text: 'Help: hello', html: `<p>${mention('Help')}: hello</p>`, mentionedPeople: [BOT] },
      { text: 'hello', mentionsBot: true },
    ],
    [
      'mentions of the bot and of others',
      {
        text: 'A & B, ask Bo about $& of A & B',
        html: `${mention('A &amp; B')}, ask ${mention('Bo', 'P2')} about $& of ${mention('A &amp; B')}`,
        mentionedPeople: [BOT, 'P2'],
      },
      { text: 'ask Bo about $& of', mentionsBot: true },
    ],
    [
      'a mention of others',
      { text: 'Bo hi', html: `${mention('Bo', 'P2')} hi`, mentionedPeople: ['P2'] },
      { text: 'Bo hi', mentionsBot: false },
    ],
    ['a bot', { personEmail: 'other@webex.bot', text: 'x' }, { sender: { isBot: true, handle: 'other@webex.bot' } }],
    ['a thread', { parentId: 'M0', text: 'x' }, { threadId: 'M0' }],
    ['a text that turns the direction', { text: 'a\u202Eb' }, { text: 'a\u202Eb' }],
  ])('reads %s', (_, more, expected) => {
    expect(decode(more)).toMatchObject(expected)
  })

  it('leaves out its own, and empty ones', () => {
    expect(decode({ personId: BOT, text: 'x' })).toBeUndefined()
    expect(decode({ text: ' ' })).toBeUndefined()
  })

  it('notifies nobody through an answer', () => {
    const html = '<spark-mention data-object-type="groupMention" data-group-type="all">All</spark-mention>'
    const text = `<@groupMention:all> ${html} <@all> <@personEmail:ada@example.org|Ada> <@PERSONID:1> List<@NonNull T>`
    const message = { id: '', to: { chatId: 'R1' }, text, plainText: text, attachments: [] }
    const { markdown } = encodeMessage(message)
    expect(markdown).not.toMatch(/<(?:@(all|person|group)|spark)/i)
    expect(markdown).toContain('List<@NonNull T>')
  })

  it('begins a thread with a reply, and stays in one', () => {
    const message = { id: '', to: { chatId: 'R1' }, text: 'x', plainText: 'x', attachments: [], replyTo: 'M2' }
    expect(encodeMessage(message)).toMatchObject({ parentId: 'M2' })
    expect(encodeMessage({ ...message, to: { chatId: 'R1', threadId: 'M1' } })).toMatchObject({ parentId: 'M1' })
  })

  it('takes an eleventh edit for one that will fail again', async () => {
    await using it = await openStage()
    const message = it.stage.message('0')
    const sent = await it.stage.connection.send(message)
    for (let edit = 1; edit <= 10; edit++) await it.stage.connection.edit?.(sent, { ...message, text: `${edit}` })
    const eleventh = it.stage.failureOf(async () => it.stage.connection.edit?.(sent, { ...message, text: '11' }))
    expect(await eleventh).toMatchObject({ retry: 'never' })
  })

  it('explains a failure with the most precise words', () => {
    const body = { message: 'The request could not be understood', errors: [{ description: 'roomId is wrong' }] }
    const answer = { status: 400, ok: false, body, header: () => undefined }
    expect(findError(answer)).toEqual({ message: 'roomId is wrong' })
    expect(findError({ ...answer, status: 423 })).toMatchObject({ retry: 'later' })
  })
})

testHostileInput(
  'webex',
  {
    id: 'M1',
    roomId: 'R1',
    roomType: 'group',
    parentId: 'M0',
    personId: 'P1',
    personEmail: 'ada@example.org',
    text: 'Helper hello',
    html: `<spark-mention data-object-id="${BOT}">Helper</spark-mention> hello`,
    mentionedPeople: [BOT],
    files: ['https://webexapis.com/v1/contents/1'],
    created: '2026-11-20T12:00:00.000Z',
    updated: '2026-11-20T12:00:00.000Z',
  },
  parsed(Message, (message) => decodeMessage(message, BOT)),
)
testHostileInput(
  'webex, a button',
  {
    id: 'A1',
    messageId: 'M1',
    personId: 'P1',
    roomId: 'R1',
    inputs: { value: 'yes' },
    created: '2026-11-20T12:00:00Z',
  },
  parsed(Action, (action) => decodeAction(action, undefined, false)),
)

it('webex: markup that is no mention costs no time', () => {
  const start = process.threadCpuUsage()
  for (const part of ['<spark-mention ', '<spark-mention a>b', 'data-object-id="', '</spark-mention>']) {
    const html = part.repeat(90_000 / part.length)
    checkMessage(
      decodeMessage(
        v.parse(Message, { id: '1', roomId: '1', roomType: 'group', personId: 'P', text: 'x', html, created: '' }),
        BOT,
      ),
    )
  }
  expect(process.threadCpuUsage(start).user / 1000).toBeLessThan(2000)
})
