import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/discourse/adapter.ts'
import { decodePost } from '../../../adapters/channels/discourse/decode.ts'
import { encodeText } from '../../../adapters/channels/discourse/encode.ts'
import { Post } from '../../../adapters/channels/discourse/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { DOCUMENT } from '../../contract/channel-checks/check.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeDiscourse } from '../../support/platforms/discourse.ts'

async function openStage({ webhook = false, config = {} } = {}) {
  const fake = await FakeDiscourse.start({ webhook })
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const textsOf = (messages: readonly { readonly text: string }[]) => messages.map(({ text }) => text)
const LONG = 'a text that is long enough for a forum'

describe('what is received', () => {
  it('has its topic, its category, and who wrote it', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'when does it leave?', isGroup: true, mentionsBot: true })
    expect((await it.stage.test.waitForReceived(1))[0]).toEqual({
      id,
      chat: { id: 'category:7', kind: 'group', title: 'Ferries of the harbour' },
      threadId: '42',
      sender: { id: '8', name: 'Ada', handle: '@ada' },
      text: 'when does it leave?',
      attachments: [],
      mentionsBot: true,
      sentAt: '2026-11-20T12:00:00.000Z',
    })
  })

  it('is an answer to the bot when it answers one of its posts, also after a restart', async () => {
    await using it = await openStage()
    const to = { chatId: 'category:7', threadId: '42' }
    const { id } = await it.stage.connection.send(it.stage.message(LONG, { to }))
    await it.stage.reopen()
    await it.fake.deliver({ text: 'why?', isGroup: true, replyTo: id })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({ mentionsBot: true, replyTo: id })
  })

  it('is of the categories of the configuration, and every message to the bot', async () => {
    await using it = await openStage({ config: { categories: ['9'] } })
    await it.fake.deliver({ text: 'not here', isGroup: true, mentionsBot: true })
    await it.fake.deliver({ text: 'personal' })
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['personal'])
  })

  it('is no message between others, which an administrator sees', async () => {
    await using it = await openStage()
    const topic = { archetype: 'private_message', title: 'Secret' }
    const others = [{ username: 'ada' }, { username: 'eve' }]
    it.fake.addTopic({ id: 90, ...topic, users: others })
    it.fake.addTopic({ id: 91, ...topic, users: others, groups: [{ name: 'helpers' }] })
    it.fake.write({ topic_id: 42, raw: '@svc welcome', user_id: -2, username: 'discobot' })
    it.fake.write({ topic_id: 90, raw: 'not for the bot, but it says @svc' })
    it.fake.write({ topic_id: 91, raw: 'to all helpers' })
    await it.fake.deliver({ text: 'personal' })
    const [first] = await it.stage.test.waitForReceived(2)
    expect(first).toMatchObject({ text: 'to all helpers', chat: { id: 'pm:91', kind: 'group' }, mentionsBot: false })
    expect(textsOf(it.stage.test.received)).toEqual(['to all helpers', 'personal'])
    expect(it.stage.test.logged).toEqual([])
  })

  it('is a message of a group from when a third person is in its topic', async () => {
    await using it = await openStage()
    const topic = { id: 92, archetype: 'private_message', title: 'Two' }
    it.fake.addTopic({ ...topic, users: [{ username: 'ada' }, { username: 'svc' }] })
    it.fake.write({ topic_id: 92, raw: 'between us' })
    await it.fake.deliver({ text: 'one' })
    await it.stage.test.waitForReceived(2)
    it.fake.addTopic({ ...topic, users: [{ username: 'ada' }, { username: 'svc' }, { username: 'eve' }] })
    it.fake.write({ topic_id: 92, raw: 'what did you say?', user_id: 9, username: 'eve' })
    await it.fake.deliver({ text: 'two' })
    const kinds = (await it.stage.test.waitForReceived(4)).map(({ text, chat }) => [text, chat.kind])
    expect(kinds).toEqual([
      ['between us', 'direct'],
      ['one', 'direct'],
      ['what did you say?', 'group'],
      ['two', 'direct'],
    ])
  })

  it('leaves out what cannot be read, and goes on', async () => {
    await using it = await openStage()
    it.fake.write({ raw: 7 as never })
    await it.fake.deliver({ text: 'after' })
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['after'])
    await it.fake.deliver({ text: 'last' })
    await it.stage.test.waitForReceived(2)
    expect(it.stage.test.logged).toEqual([expect.stringContaining('a form that cannot be read')])
  })

  it('comes once, also when it becomes visible late and is listed again', async () => {
    await using it = await openStage()
    const late = it.fake.write({ raw: 'late', topic_id: 77, hidden: true })
    await it.fake.deliver({ text: 'one' })
    await it.stage.test.waitForReceived(1)
    it.fake.change(late.id, { hidden: false, version: 2 })
    await it.fake.deliver({ text: 'two' })
    const texts = textsOf(await it.stage.test.waitForReceived(3))
    expect(texts).toEqual(['one', 'late', 'two'])
    expect(it.stage.test.deliveries).toBe(3)
  })

  it('is read in pages when there was much, in order, and nothing from before the first start', async () => {
    const fake = await FakeDiscourse.start()
    fake.write({ raw: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await stage.connection[Symbol.asyncDispose]()
    for (let n = 0; n < 130; n++) fake.write({ raw: `m${n}` })
    await stage.reopen()
    expect(textsOf(await stage.test.waitForReceived(130))).toEqual(Array.from({ length: 130 }, (_, n) => `m${n}`))
    await stage.reopen()
    await fake.deliver({ text: 'last' })
    expect(textsOf(await stage.test.waitForReceived(131)).at(-1)).toBe('last')
  })
})

describe('the webhook', () => {
  it('is refused without a secret of the configuration', async () => {
    await using it = await openStage()
    const request = it.fake.signed({ post: { id: 1 } }, { secret: '' })
    expect((await it.stage.receiveWebhook(request)).status).toBe(401)
    expect((await it.stage.receiveWebhook(it.fake.signed({ post: { id: 1 } }))).status).toBe(401)
  })

  it('tells of a post, which is read as the bot may see it, once however often it is told', async () => {
    await using it = await openStage({ webhook: true })
    const { id } = it.fake.write({ raw: 'as it is', topic_id: 77 })
    const request = it.fake.signed({ post: { id, raw: 'as the request says', username: 'eve' } })
    for (let n = 0; n < 3; n++) expect((await it.stage.receiveWebhook(request)).status).toBe(200)
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['as it is'])
    expect(it.stage.test.deliveries).toBe(1)
  })

  it('tells of posts that are gone, of history, and of other things, which are left', async () => {
    const fake = await FakeDiscourse.start({ webhook: true })
    const old = fake.write({ raw: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    const bodies = [
      { post: { id: 999_999 } },
      { post: { id: old.id } },
      { ping: 'OK' },
      { topic: { id: 1 } },
      { post: null },
    ]
    for (const body of bodies) expect((await stage.receiveWebhook(fake.signed(body))).status).toBe(200)
    expect((await stage.receiveWebhook(fake.signed('text'))).status).toBe(400)
    expect((await stage.receiveWebhook(fake.signed({ post: { id: 'x' } }))).status).toBe(400)
    expect((await stage.receiveWebhook({ ...fake.signed({}), method: 'GET' })).status).toBe(405)
    expect(stage.test.deliveries).toBe(0)
  })

  it('is one way of two: what it did not tell is found at the next look', async () => {
    await using it = await openStage({ webhook: true })
    it.fake.write({ raw: 'untold', topic_id: 77 })
    await it.stage.test.waitForSleep()
    it.stage.test.wake()
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['untold'])
  })

  it('tells of edits after a restart, too', async () => {
    await using it = await openStage({ webhook: true })
    const id = await it.fake.deliver({ text: 'first' })
    await it.stage.reopen()
    await it.fake.deliver({ text: 'second', editOf: id })
    expect((await it.stage.test.waitForReceived(2))[1]).toMatchObject({ id, text: 'second', isEdit: true })
  })

  it('acknowledges nothing that could not be stored', async () => {
    await using it = await openStage({ webhook: true })
    it.stage.test.isRefusing = true
    await expect(it.fake.deliver({ text: 'kept' })).rejects.toThrow('500')
    it.stage.test.isRefusing = false
    await it.stage.reopen()
    expect(textsOf(await it.stage.test.waitForReceived(1))).toEqual(['kept'])
  })
})

describe('what is sent', () => {
  const thread = { chatId: 'category:7', threadId: '42' }

  it('appears once: when it is sent again at once, and when the forum has forgotten the request', async () => {
    await using it = await openStage()
    const message = it.stage.message(LONG, { to: thread })
    it.fake.fail({ kind: 'lost_answer' })
    await expect(it.stage.connection.send(message)).rejects.toMatchObject({ retry: 'later' })
    const sent = await it.stage.connection.send(message)
    expect(sent).toEqual({ id: it.fake.sent[0]?.id })
    it.fake.forgetAnswers()
    expect(await it.stage.connection.send(message)).toEqual({ ...sent, wasSentBefore: true })
    expect(it.fake.sent).toHaveLength(1)
  })

  it('is filled up when it is too short, and notifies nobody', async () => {
    await using it = await openStage()
    const sent = await it.stage.connection.send(it.stage.message('@ada: yes, a@b.c', { to: thread }))
    await it.stage.connection.edit!(sent, it.stage.message('@ada no'))
    expect(it.fake.sent[0]?.edits).toEqual(['@\u200bada: yes, a@b.c'])
    expect(it.fake.sent[0]?.text).toBe('@\u200bada no')
    expect(it.fake.violations).toEqual([])
  })

  it('may be an edit or a removal after a restart', async () => {
    await using it = await openStage()
    const sent = await it.stage.connection.send(it.stage.message(LONG))
    await it.stage.reopen()
    await it.stage.connection.edit!(sent, it.stage.message(`${LONG}, changed`))
    expect(it.fake.sent[0]?.text).toBe(`${LONG}, changed`)
    await it.stage.connection.delete!(sent, { chatId: it.fake.chats.direct })
    expect(it.fake.sent).toEqual([])
  })

  it('puts files that do not fit beside the text into a second post', async () => {
    await using it = await openStage()
    const attachments = [attachmentOf({ ...DOCUMENT, name: 'a|b].txt' })]
    await it.stage.connection.send(it.stage.message('x'.repeat(32_000), { attachments }))
    expect(it.fake.sent.map(({ files }) => files.length)).toEqual([0, 1])
    expect(it.fake.sent[1]?.text).toMatch(/^\[a_b_\.txt\|attachment\]\(upload:\/\//)
  })

  it('needs a topic', async () => {
    await using it = await openStage()
    for (const to of [{ chatId: 'category:7' }, { chatId: 'category:7', threadId: '../1' }, { chatId: 'pm:x' }])
      await expect(it.stage.connection.send(it.stage.message(LONG, { to }))).rejects.toMatchObject({ retry: 'never' })
    expect(it.fake.sent).toEqual([])
  })

  it('waits for an approval, which is a success', async () => {
    await using it = await openStage()
    it.fake.answerNext(200, { success: true, action: 'enqueued', pending_post: { id: 1 } })
    expect(await it.stage.connection.send(it.stage.message(LONG))).toEqual({ id: '' })
  })

  it.each([
    [422, { errors: ['Body seems unclear'] }, {}, { reason: 'invalid_request', retry: 'never' }],
    [403, { errors: ['closed'], error_type: 'invalid_access' }, {}, { reason: 'invalid_request', retry: 'never' }],
    [429, 'Slow down', { 'retry-after': '9' }, { reason: 'rate_limit', retryAfterSecs: 9 }],
    [405, { errors: ['The site is in read only mode.'], error_type: 'read_only' }, {}, { message: /read only/ }],
    [500, '<html>', {}, { reason: 'server_error', retry: 'later' }],
  ])('is refused with %i and %o', async (status, body, headers, expected) => {
    await using it = await openStage()
    it.fake.answerNext(status, body, headers as Record<string, string>)
    const failure = await it.stage.failureOf(() => it.stage.connection.send(it.stage.message(LONG)))
    const { message = '', ...rest } = expected as { message?: RegExp | '' }
    expect(failure).toMatchObject(rest)
    expect(String(failure)).toMatch(message)
  })
})

describe('files', () => {
  it('are read without the key, from the store that the forum leads to, and from nowhere else', async () => {
    await using it = await openStage()
    for (const file of ['../t/42.json', '/etc', 'a/b', '', '.', '?x'])
      await expect(
        (async () => it.stage.connection.readAttachment?.({ file }, AbortSignal.timeout(1000)))(),
      ).rejects.toThrow()
    expect(it.fake.violations).toEqual([])
  })
})

describe('configuration', () => {
  it.each([{ webhook_secret: 'short' }, { api_username: '@svc' }, { api_username: 'a/b' }, { poll_secs: 1 }])(
    'refuses %o',
    async (more) => {
      const fake = await FakeDiscourse.start()
      expect(() => new ChannelStage(adapter, fake, { ...fake.config, ...more })).toThrow()
      await fake[Symbol.asyncDispose]()
    },
  )
})

describe('posts', () => {
  const bot = { id: 5, username: 'Svc', groups: [] }
  const topic = { archetype: 'regular', category_id: 7, title: 'T' }
  const read = parsed(Post, (post) => decodePost(post, { bot, topic }))
  const base = {
    id: 1,
    topic_id: 2,
    post_number: 3,
    user_id: 8,
    username: 'ada',
    name: 'Ada',
    created_at: '2026-11-20T12:00:00Z',
    raw: 'hello',
  }

  it.each([
    ['plain', {}, { id: '2/3', text: 'hello', mentionsBot: false }],
    ['with a mention', { raw: '@svc, hi' }, { text: 'hi', mentionsBot: true }],
    ['that names another', { raw: 'ask @svc-two or x@svc.org' }, { mentionsBot: false }],
    ['without a name', { name: '' }, { sender: { name: 'ada' } }],
    ['with direction marks', { name: '\u202eadA' }, { sender: { name: '\u202eadA' } }],
    ['that is a whisper', { post_type: 4 }, undefined],
    ['that is hidden', { hidden: true }, undefined],
    ['that its author removed', { user_deleted: true }, undefined],
    ['of the bot', { user_id: 5 }, undefined],
    ['of the bot under another number', { user_id: 6, username: 'SVC' }, undefined],
    ['of no time', { created_at: 'x' }, { sentAt: '1970-01-01T00:00:00.000Z' }],
  ])('one %s', (_, more, expected) => {
    const message = read({ ...base, ...more })
    if (expected === undefined) expect(message).toBeUndefined()
    else expect(message).toMatchObject(expected)
  })

  it('notifies nobody', () => {
    expect(encodeText('@eve @@bob (@al) a@b.org', 1)).toBe('@\u200beve @@\u200bbob (@\u200bal) a@b.org')
  })

  it('fills up to the least length, as the forum counts it', () => {
    for (const text of ['', 'OK', 'x'.repeat(19)]) expect([...encodeText(text, 20)].length).toBeGreaterThanOrEqual(20)
    expect(encodeText('x'.repeat(20), 20)).toBe('x'.repeat(20))
  })
})

for (const archetype of ['regular', 'private_message'])
  testHostileInput(
    `discourse, ${archetype}`,
    {
      id: 1,
      topic_id: 2,
      post_number: 3,
      post_type: 1,
      user_id: 8,
      username: 'ada',
      name: 'Ada',
      created_at: '2026-11-20T12:00:00Z',
      raw: '@svc, hi ![a|1x1](upload://x.png) [b.txt|attachment](upload://y.txt) (3 Bytes)',
      version: 1,
      reply_to_post_number: 1,
      reply_to_user: { username: 'svc' },
      category_id: 7,
      topic_title: 'T',
    },
    parsed(Post, (post) =>
      decodePost(post, {
        bot: { id: 5, username: 'svc', groups: ['helpers'] },
        topic: { archetype, details: { allowed_users: [{ username: 'svc' }], allowed_groups: [] } },
      }),
    ),
  )
