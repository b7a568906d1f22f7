import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/nextcloud/adapter.ts'
import { decodeActivity, decodeMessage } from '../../../adapters/channels/nextcloud/decode.ts'
import { encodeText } from '../../../adapters/channels/nextcloud/encode.ts'
import { findBotError, findError } from '../../../adapters/channels/nextcloud/errors.ts'
import { renderText } from '../../../adapters/channels/nextcloud/text.ts'
import { Created, Message } from '../../../adapters/channels/nextcloud/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { DOCUMENT, PICTURE } from '../../contract/channel-checks/check.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { startFakeNextcloudAccount, startFakeNextcloudBot } from '../../support/platforms/nextcloud.ts'

async function openBot(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await startFakeNextcloudBot()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
async function openAccount(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await startFakeNextcloudAccount()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

it('nobody but single people is notified by what an agent writes', async () => {
  const mass = ['@all', '@"all"', '@ALL.', '@"group/admins"', '@group/a', '@"federated_group/a"', '@"team/x"']
  for (const text of mass) expect(encodeText(text)).toBe(text.replace('@', '@\u200b'))
  for (const text of ['@ada', '@"ada l"', '@allan', 'all', '@"guest/a1"']) expect(encodeText(text)).toBe(text)
  for (const open of [openBot, openAccount]) {
    await using it = await open()
    await it.stage.connection.send(it.stage.message('hi @"all"'))
    expect(it.fake.sent[0]?.text).toBe('hi @\u200b"all"')
  }
})

describe('nextcloud, a bot', () => {
  it('a message to its name, or that answers one of its own, is for it; the text is without the name', async () => {
    await using it = await openBot()
    const own = await it.fake.write({ text: 'mine', isOwn: true, isGroup: true })
    const other = await it.fake.write({ text: 'theirs', isGroup: true })
    await it.fake.write({ text: 'and?', isGroup: true, replyTo: own })
    await it.fake.write({ text: 'so?', isGroup: true, replyTo: other })
    await it.fake.write({ text: 'hi @helper', isGroup: true })
    const received = await it.stage.test.waitForReceived(4)
    expect(received.map(({ text, mentionsBot, replyTo }) => [text, mentionsBot, replyTo])).toEqual([
      ['theirs', false, undefined],
      ['and?', true, own],
      ['so?', false, other],
      ['hi', true, undefined],
    ])
    expect(received[0]).toMatchObject({ chat: { title: 'harbour' }, sender: { name: 'Ada', handle: '@ada' } })
  })

  it('a request that is sent once more is refused', async () => {
    await using it = await openBot()
    await it.fake.deliver({ text: 'once' })
    expect((await it.fake.repeat()).status).toBe(401)
    expect(it.stage.test.deliveries).toBe(1)
  })

  it('one that could not be stored may come again', async () => {
    await using it = await openBot()
    it.stage.test.isRefusing = true
    await expect(it.fake.deliver({ text: 'not yet' })).rejects.toThrow('500')
    it.stage.test.isRefusing = false
    expect((await it.fake.repeat()).status).toBe(200)
    expect(await it.stage.test.waitForReceived(1)).toHaveLength(1)
  })

  it('answers 200 to what is no message, and 400 to what is no activity', async () => {
    await using it = await openBot()
    const note = { type: 'Note', id: '7', name: 'message', content: '{"message":"x","parameters":[]}' }
    const target = { type: 'Collection', id: 'gr0up001', name: 'harbour' }
    const actor = { type: 'Person', id: 'users/ada', name: 'Ada' }
    for (const type of ['Activity', 'Like', 'Undo', 'Join', 'Leave'])
      expect(await it.fake.send({ type, actor, object: note, target })).toBe(200)
    expect(await it.fake.send({ type: 'Create', actor: { ...actor, id: 'bots/bot-b' }, object: note, target })).toBe(
      200,
    )
    expect(await it.fake.send({ type: 'Create', actor, object: { ...note, content: '{' }, target })).toBe(200)
    expect(await it.fake.send({ type: 'Create', actor, object: note, target: { id: '../..' } })).toBe(200)
    expect(await it.fake.send('hello')).toBe(400)
    expect(it.stage.test.received).toHaveLength(0)
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('a guest is not verified, and has no handle that an allow-list could name', async () => {
    await using it = await openBot()
    await it.fake.write({ text: 'hi', actor: ['guests', 'ada', 'ada\u202e'] })
    expect((await it.stage.test.waitForReceived(1))[0]?.sender).toEqual({
      id: 'guests/ada',
      name: 'ada\u202e',
      isUnverified: true,
    })
  })

  it('names files, and mentions as people read them', async () => {
    await using it = await openBot()
    const parameters = { 'mention-user1': { type: 'user', id: 'bob', name: 'Bob' } }
    await it.fake.write({ text: 'for {mention-user1} {unknown} {__proto__}', parameters, files: [DOCUMENT] })
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message).toMatchObject({ text: 'for @Bob {unknown} {__proto__}\n[notes ä.txt]', attachments: [] })
  })

  it('signs the text, answers a message, and says that it sends no files', async () => {
    await using it = await openBot()
    const id = await it.fake.write({ text: 'hi', isGroup: true })
    const to = { chatId: it.fake.chats.group }
    const attachments = [attachmentOf(PICTURE)]
    await it.stage.connection.send(it.stage.message('Grüße', { to, replyTo: id, attachments }))
    const text = 'Grüße\n\n[The file dot.png was not sent: bots cannot send files.]'
    expect(it.fake.sent).toMatchObject([{ text, replyTo: id, chatId: to.chatId }])
    expect(it.fake.violations).toEqual([])
  })

  it('a conversation where it is not switched on does not stop the others', async () => {
    await using it = await openBot()
    const send = (chatId: string) => it.stage.connection.send(it.stage.message('hi', { to: { chatId } }))
    const error = await it.stage.failureOf(() => send('elsewhere'))
    expect(error).toMatchObject({ reason: 'invalid_request', retry: 'never' })
    await send(it.fake.chats.group)
    expect(it.fake.sent).toHaveLength(1)
  })

  it('a server without Talk is told', async () => {
    const fake = await startFakeNextcloudBot()
    fake.removeTalk()
    await using stage = new ChannelStage(adapter, fake)
    expect(await stage.failureOf(() => stage.open())).toMatchObject({ retry: 'never' })
  })

  it('needs a secret that the server takes, and an account needs its name', () => {
    const base = { base_url: 'https://x.test' }
    expect(v.safeParse(adapter.config, { ...base, token: 'short' }).success).toBe(false)
    expect(v.safeParse(adapter.config, { ...base, token: '' }).success).toBe(false)
    expect(v.safeParse(adapter.config, { ...base, token: 'x', mode: 'user' }).success).toBe(false)
    expect(v.safeParse(adapter.config, { ...base, token: 'x', mode: 'user', username: 'svc' }).success).toBe(true)
  })
})

describe('nextcloud, an account', () => {
  it('reads of a conversation it joins what was written since, and all of a new one with one person', async () => {
    await using it = await openAccount()
    it.fake.addRoom('old00001', 2)
    for (const text of ['before', 'too']) await it.fake.write({ text, token: 'old00001' }, { isQuiet: true })
    await it.fake.write({ text: 'joined', token: 'old00001', system: 'user_added' }, { isQuiet: true })
    it.fake.addRoom('new00001', 1)
    await it.fake.write({ text: 'one', token: 'new00001' }, { isQuiet: true })
    await it.fake.write({ text: 'two', token: 'new00001' })
    await it.stage.test.waitForReceived(2)
    await it.fake.write({ text: 'after', token: 'old00001' })
    const received = await it.stage.test.waitForReceived(3)
    expect(received.map(({ text, chat }) => [text, chat.kind])).toEqual([
      ['one', 'direct'],
      ['two', 'direct'],
      ['after', 'group'],
    ])
  })

  it('reads several pages of what came while it was away, in order, and nothing from before the first start', async () => {
    const fake = await startFakeNextcloudAccount()
    await fake.deliver({ text: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await stage.connection[Symbol.asyncDispose]()
    for (let index = 0; index < 450; index++)
      await fake.write({ text: `m${index}`, isGroup: index % 2 === 0 }, { isQuiet: true })
    await stage.reopen()
    const received = await stage.test.waitForReceived(450)
    const odd = received.flatMap(({ text, chat }) => (chat.kind === 'direct' ? [Number(text.slice(1))] : []))
    expect(odd).toEqual(Array.from({ length: 225 }, (_, index) => 2 * index + 1))
  })

  it('reads the longest messages there are, however many came at once', async () => {
    await using it = await openAccount()
    // They are escaped, as the server does with all but ASCII.
    const text = '\u0001'.repeat(32_000)
    for (let index = 0; index < 190; index++) await it.fake.write({ text: `${index} ${text}` }, { isQuiet: true })
    await it.fake.deliver({ text: 'last' })
    expect((await it.stage.test.waitForReceived(191)).at(-1)?.text).toBe('last')
  })

  it('asks for nothing more while nothing is new', async () => {
    await using it = await openAccount()
    await it.fake.deliver({ text: 'hi' })
    await it.stage.test.waitForReceived(1)
    const before = it.fake.requests.filter((request) => request.includes('/chat/')).length
    for (let round = 0; round < 3; round++) await it.fake.nextQuestion()
    expect(it.fake.requests.filter((request) => request.includes('/chat/'))).toHaveLength(before)
  })

  it('leaves out notices, bots and what cannot be read, and an answer to it is for it', async () => {
    await using it = await openAccount()
    const { id } = await it.stage.connection.send(it.stage.message('mine', { to: { chatId: it.fake.chats.group } }))
    await it.fake.write({ text: 'joined', system: 'user_added', isGroup: true })
    await it.fake.write({ text: 'beep', actor: ['bots', 'bot-1', 'Bot'], isGroup: true })
    await it.fake.write({ text: 'odd', parameters: { message: 7 }, actor: [7 as never, 'x', 'y'], isGroup: true })
    await it.fake.write({ text: 'and?', replyTo: id, isGroup: true })
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message).toMatchObject({ text: 'and?', mentionsBot: true, replyTo: id })
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('finds a message whose outcome is not known, and does not send it again', async () => {
    await using it = await openAccount()
    const message = it.stage.message('hello')
    it.fake.fail({ kind: 'lost_answer' })
    await it.stage.failureOf(() => it.stage.connection.send(message))
    const sent = await it.stage.connection.send({ ...message, mayBeSent: true })
    expect(sent).toEqual({ id: it.fake.sent[0]?.id, wasSentBefore: true })
    expect(it.fake.sent).toHaveLength(1)
    await it.stage.connection.send({ ...it.stage.message('other'), mayBeSent: true })
    expect(it.fake.sent).toHaveLength(2)
  })

  it('stores files in a folder of the message under their names, without a way out of it', async () => {
    await using it = await openAccount({ upload_folder: 'Sent' })
    const attachments = [attachmentOf(DOCUMENT), attachmentOf({ ...PICTURE, name: '../../x.png' })]
    const message = it.stage.message('look', { attachments })
    await it.stage.connection.send(message)
    const puts = it.fake.requests.filter((request) => request.startsWith('PUT'))
    expect(puts).toEqual([
      `PUT /remote.php/dav/files/svc/Sent/${message.id}/notes ä.txt`,
      `PUT /remote.php/dav/files/svc/Sent/${message.id}/.._.._x.png`,
    ])
  })

  it('reads no file outside of the folder of the account', async () => {
    await using it = await openAccount()
    const before = it.fake.requests.length
    for (const path of ['../bob/x', 'a/../../bob/x', '..', 'a/..', './x', ''])
      await expect(
        (async () => it.stage.connection.readAttachment?.({ path }, AbortSignal.timeout(1000)))(),
      ).rejects.toThrow()
    expect(it.fake.requests).toHaveLength(before)
  })
})

describe('the errors of nextcloud', () => {
  const answer = (status: number, message = '') => ({
    status,
    ok: false,
    body: { ocs: { meta: { status: 'failure', message } } },
    header: () => undefined,
  })
  it('401 is about the account, and for a bot about one conversation', () => {
    expect(findError(answer(401, 'no'))).toEqual({ message: 'no' })
    expect(findBotError(answer(401))?.reason).toBe('invalid_request')
    expect(findBotError(answer(404, 'no'))?.reason).toBeUndefined()
  })
})

describe('the text of nextcloud', () => {
  it('keeps what only looks like a placeholder', () => {
    expect(renderText('{a} {file} {', { file: { type: 'file' } }, 'x')).toEqual({
      text: '{a} {file} {',
      files: [],
      mentionsOwn: false,
    })
  })
})

const parameters = {
  'mention-user1': { type: 'user', id: 'svc', name: 'Svc' },
  file: { type: 'file', id: '1', name: 'a.png', path: 'Talk/a.png', mimetype: 'image/png', size: '12' },
}
const note = {
  type: 'Note',
  id: '1',
  name: 'message',
  content: JSON.stringify({ message: '@Helper hi {file}', parameters }),
}
const actor = { type: 'Person', id: 'users/ada', name: 'Ada' }
testHostileInput(
  'nextcloud, a bot',
  {
    type: 'Create',
    actor,
    object: { ...note, inReplyTo: { actor, object: note } },
    target: { type: 'Collection', id: 'n3xtc10ud', name: 'world' },
  },
  parsed(Created, (read) => decodeActivity(read, { botName: 'Helper', directRooms: [], now: 0 })),
)
testHostileInput(
  'nextcloud, an account',
  {
    id: 1,
    actorType: 'users',
    actorId: 'ada',
    actorDisplayName: 'Ada',
    timestamp: 1_763_640_000,
    systemMessage: '',
    message: '{mention-user1} hi {file}',
    messageParameters: parameters,
    referenceId: '',
    parent: { id: 1, actorType: 'users', actorId: 'svc' },
  },
  parsed(Message, (read) => decodeMessage(read, { userId: 'svc', room: { type: 2, token: 'a', displayName: 'A' } })),
)
