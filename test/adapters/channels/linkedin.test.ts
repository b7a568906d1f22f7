import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/linkedin/adapter.ts'
import { LinkedInConfig } from '../../../adapters/channels/linkedin/config.ts'
import { decodeComment } from '../../../adapters/channels/linkedin/decode.ts'
import { Comment } from '../../../adapters/channels/linkedin/wire.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { FakeLinkedIn } from '../../support/platforms/linkedin.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeLinkedIn.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

const ORGANIZATION = 'urn:li:organization:2414183'
const POST = 'urn:li:activity:7094637247890620418'

describe('comments on LinkedIn', () => {
  it('begin a thread each, below which everything is answered', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'when does it open?' })
    const [message] = await it.stage.test.waitForReceived(1)
    expect(message).toEqual({
      id,
      chat: { id: ORGANIZATION, kind: 'group' },
      threadId: id,
      sender: { id: it.fake.person, name: 'A8xe03Qt10' },
      text: 'when does it open?',
      attachments: [],
      mentionsBot: true,
      sentAt: '2026-11-20T12:00:00.000Z',
      replyContext: { object: POST, parent: id },
    })
    const reply = await it.fake.deliver({ text: 'I wonder too', replyTo: id })
    const [, second] = await it.stage.test.waitForReceived(2)
    expect(second).toMatchObject({ id: reply, threadId: id, replyTo: id, mentionsBot: false })
    const to = { chatId: ORGANIZATION, threadId: id, replyContext: second?.replyContext ?? {} }
    await it.stage.connection.send(it.stage.message('At nine.', { to }))
    await it.stage.connection.send(it.stage.message('And at one.', { to: { chatId: ORGANIZATION, threadId: id } }))
    expect(it.fake.sent.map(({ threadId }) => threadId)).toEqual([id, id])
    expect(it.fake.violations).toEqual([])
  })

  it('of other pages, edits of them, and those that are gone, are left out', async () => {
    await using it = await openStage()
    const other = 'urn:li:organization:1'
    it.fake.notify(it.fake.chats.thread, { organizationalEntity: other })
    it.fake.notify(it.fake.chats.thread, { action: 'COMMENT_EDIT' })
    it.fake.notify(`urn:li:comment:(${POST},404)`)
    it.fake.notify('urn:li:comment:(urn:li:activity:1,2)/../../posts')
    await it.fake.deliver({ text: 'after' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['after'])
    expect(it.fake.violations).toEqual([])
  })

  it('that cannot be read, or are closed to the page, do not hold up the others', async () => {
    await using it = await openStage()
    it.fake.tell({ content: { type: 'IMAGE' } })
    it.fake.tell('closed')
    await it.fake.deliver({ text: 'after' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['after'])
    expect(it.stage.test.logged.join('\n')).toContain('in a form that can be read')
  })

  it('of a long absence are read up to catch_up_messages, and the rest is told', async () => {
    await using it = await openStage({ catch_up_messages: 60 })
    await it.fake.deliver({ text: 'first' })
    await it.stage.test.waitForReceived(1)
    await it.fake.disconnect()
    await it.stage.connection.closed
    for (let n = 1; n <= 80; n++) it.fake.tell({ message: { text: `missed ${n}` } })
    const connection = await it.stage.reopen()
    const received = await it.stage.test.waitForReceived(61)
    expect(received.at(-1)?.text).toBe('missed 80')
    const warning = /60 were read, and \d+ or more were not: catch_up_messages/
    expect(connection.warnings?.()).toEqual([expect.stringMatching(warning)])
    expect(it.stage.test.logged.join('\n')).toMatch(warning)
  })

  it('from before the first start are history, and those that came while it was away are read in order', async () => {
    const fake = await FakeLinkedIn.start()
    fake.notify(fake.chats.thread, { lastModifiedAt: Date.now() - 1000 })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.disconnect()
    await stage.connection.closed
    for (let index = 0; index < 120; index++) await fake.deliver({ text: `m${index}` })
    await stage.reopen()
    const received = await stage.test.waitForReceived(120)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 120 }, (_, index) => `m${index}`))
  })

  it('are read and passed on once', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'once' })
    await it.stage.test.waitForReceived(1)
    await it.fake.deliver({ text: 'once', redeliveryOf: id })
    await it.fake.deliver({ text: 'last' })
    await it.stage.test.waitForReceived(2)
    expect(it.stage.test.deliveries).toBe(2)
  })
})

describe('a mention on LinkedIn', () => {
  const decode = (text: string, attributes: readonly unknown[]) =>
    decodeComment(
      v.parse(Comment, {
        actor: 'urn:li:person:eve',
        object: POST,
        parentComment: `urn:li:comment:(${POST},1)`,
        created: { time: 1 },
        message: { text, attributes },
      }),
      { urn: `urn:li:comment:(${POST},2)`, organization: ORGANIZATION },
    )
  it.each([
    [{ organization: { organization: ORGANIZATION } }, 'when?', true],
    [{ 'com.linkedin.common.CompanyAttributedEntity': { company: ORGANIZATION } }, 'when?', true],
    [{ organization: { organization: 'urn:li:organization:24141830' } }, 'Harbour, when?', false],
    [{ person: { person: 'urn:li:person:2414183' } }, 'Harbour, when?', false],
  ])('is told by %j', (value, text, isMention) => {
    const message = decode('Harbour, when?', [{ start: 0, length: 7, value }])
    expect([message?.text, message?.mentionsBot]).toEqual([text, isMention])
  })

  it('that lies outside of the text changes nothing', () => {
    const value = { organization: { organization: ORGANIZATION } }
    expect(decode('short', [{ start: 900, length: 5, value }])?.text).toBe('short')
  })
})

describe('posts on LinkedIn', () => {
  it('show signs that mean something as they are', async () => {
    await using it = await openStage()
    const text = String.raw`#1 @harbour (a) [b] {c} <d> *e* _f_ ~g~ h\i j|k`
    const { id } = await it.stage.connection.send(it.stage.message(text))
    expect(it.fake.sent).toMatchObject([{ id, text }])
    expect(it.fake.violations).toEqual([])
  })
})

describe('the token of LinkedIn', () => {
  it('is renewed once, and kept for the next connection', async () => {
    await using it = await openStage()
    it.fake.expire()
    await Promise.all(['one', 'two'].map((text) => it.stage.connection.send(it.stage.message(text))))
    await it.stage.reopen()
    expect(it.fake.refreshes).toBe(1)
  })

  it.each([
    [6 * 86_400, 1],
    [8 * 86_400, 0],
  ])('that ends in %i seconds, and that nothing renews, is worth %i warnings', async (seconds, count) => {
    const fake = await FakeLinkedIn.start()
    fake.expiresInSecs = seconds
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, refresh_token: undefined })
    await stage.open()
    expect(stage.connection.warnings?.()).toHaveLength(count)
  })

  it('cannot be renewed without a refresh token', async () => {
    await using it = await openStage({ refresh_token: undefined })
    it.fake.expire()
    await expect(it.stage.connection.send(it.stage.message('hi'))).rejects.toMatchObject({
      reason: 'auth',
      retry: 'never',
      message: expect.stringContaining('refresh_token'),
    })
  })
})

describe('LinkedIn refuses', () => {
  it('an app without the product, which says so', async () => {
    await using it = await openStage()
    it.fake.refusal = { status: 403, body: { message: 'Not enough permissions to access: organizations.GET' } }
    await expect(adapter.probe(it.stage.test.link)).rejects.toMatchObject({
      retry: 'never',
      message: expect.stringContaining('needs_partner_access'),
    })
  })

  it('a version that it does not serve any more, which names the key to change', async () => {
    const fake = await FakeLinkedIn.start()
    await using stage = new ChannelStage(adapter, fake, { ...fake.config, api_version: '202401' })
    await expect(stage.open()).rejects.toMatchObject({
      retry: 'never',
      message: expect.stringContaining('api_version'),
    })
  })

  it.each([
    ['2414183', true],
    ['urn:li:organization:2414183', false],
    ['urn:li:person:2414183', false],
    ['../posts', false],
  ])('an organization such as %j: %s', (organization, isValid) => {
    expect(v.safeParse(LinkedInConfig, { token: 'a', organization }).success).toBe(isValid)
  })
})

testHostileInput(
  'linkedin',
  {
    actor: 'urn:li:person:A8xe03Qt10',
    commentUrn: `urn:li:comment:(${POST},2)`,
    object: POST,
    parentComment: `urn:li:comment:(${POST},1)`,
    created: { time: 1_763_640_000_000 },
    message: {
      text: 'Harbour, hi',
      attributes: [{ start: 0, length: 7, value: { organization: { organization: ORGANIZATION } } }],
    },
  },
  parsed(Comment, (comment) =>
    decodeComment(comment, { urn: `urn:li:comment:(${POST},2)`, organization: ORGANIZATION }),
  ),
)
