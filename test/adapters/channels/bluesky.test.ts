import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/bluesky/adapter.ts'
import { decodeNotification } from '../../../adapters/channels/bluesky/decode.ts'
import { partsOf } from '../../../adapters/channels/bluesky/encode.ts'
import { Notification } from '../../../adapters/channels/bluesky/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { PICTURE } from '../../contract/channel-checks/check.ts'
import { FakeBluesky, mentionFacet } from '../../support/platforms/bluesky.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeBluesky.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

const BOT = { did: 'did:plc:botbotbotbotbotbotbotbot', handle: 'helper.bsky.test' }
const post = (text: string, more: object = {}) => ({
  uri: 'at://did:plc:ada/app.bsky.feed.post/3kaaaaaaaaaaa',
  cid: 'bafyreia',
  author: { did: 'did:plc:ada', handle: 'ada.bsky.test', displayName: 'Ada' },
  reason: 'mention',
  record: { $type: 'app.bsky.feed.post', text, createdAt: '2026-11-20T12:00:00Z', ...more },
  isRead: false,
  indexedAt: '2026-11-20T12:00:00.000Z',
})
const decode = parsed(Notification, (notification) => decodeNotification(notification, BOT))

it.each([
  ['family emoji', '👨‍👩‍👧‍👦'.repeat(300), '👨‍👩‍👧‍👦'],
  ['one letter with thousands of accents', `e${'\u0301'.repeat(4000)}`, ''],
])('a text of %s is several posts of 3,000 bytes at most', (_, text, whole) => {
  const texts = partsOf(text, []).map((part) => part.text)
  expect(texts.length).toBe(3)
  for (const each of texts) expect(Buffer.byteLength(each)).toBeLessThanOrEqual(3000)
  for (const each of texts) expect(each.startsWith(whole) && each.endsWith(whole)).toBe(true)
  expect(texts.join('')).toBe(text)
})

describe('the text of a post on Bluesky', () => {
  it('is without the mention of the account, wherever the bytes before it put it', () => {
    const text = 'Grüße 👩‍👩‍👧 @helper.bsky.test, wie geht’s?'
    const start = Buffer.byteLength('Grüße 👩‍👩‍👧 ')
    const facets = [mentionFacet('@helper.bsky.test', start)]
    expect(decode(post(text, { facets }))).toMatchObject({ text: 'Grüße 👩‍👩‍👧 , wie geht’s?', mentionsBot: true })
  })

  it('has whole addresses where an app shows them shortened', () => {
    const features = [{ $type: 'app.bsky.richtext.facet#link', uri: 'https://example.org/a/long/path' }]
    const facets = [{ index: { byteStart: 4, byteEnd: 22 }, features }]
    expect(decode(post('see example.org/a/l... please', { facets }))?.text).toBe(
      'see https://example.org/a/long/path please',
    )
  })

  it('survives places that overlap, lie outside of it or are split within a sign', () => {
    const places = [
      [0, 3],
      [1, 2],
      [2, 9000],
      [5, 5],
    ]
    const facets = places.map(([byteStart, byteEnd]) => ({ ...mentionFacet('@x'), index: { byteStart, byteEnd } }))
    expect(decode(post('äöü tail', { facets }))?.text).toContain('tail')
  })
})

describe('who wrote on Bluesky', () => {
  it('has no handle when the domain does not confirm it, as several people have this one', () => {
    const { sender } = decode({ ...post('hi'), author: { did: 'did:plc:eve', handle: 'handle.invalid' } }) ?? {}
    expect(sender).toEqual({ id: 'did:plc:eve', name: 'did:plc:eve' })
  })

  it('is known by the id, whatever the name pretends to be', () => {
    const author = { did: 'did:plc:eve', handle: 'eve.bsky.test', displayName: '\u202eadA\u202c' }
    expect(decode({ ...post('hi'), author })?.sender).toMatchObject({ id: 'did:plc:eve', handle: 'eve.bsky.test' })
  })
})

describe('receiving on Bluesky', () => {
  it('reads a reply to somebody else in the thread as one that is not for the account', async () => {
    await using it = await openStage()
    const id = await it.fake.deliver({ text: 'what do you think?', isGroup: true })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({
      id,
      threadId: it.fake.chats.thread,
      replyTo: it.fake.chats.thread,
      mentionsBot: false,
      chat: { id: BOT.did, kind: 'group', title: '@helper.bsky.test' },
    })
  })

  it('reads several pages of what came while it was away, in order, and nothing from before the first start', async () => {
    const fake = await FakeBluesky.start()
    await fake.deliver({ text: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.disconnect()
    await stage.connection.closed
    for (let index = 0; index < 120; index++) await fake.deliver({ text: `m${index}` })
    await stage.reopen()
    const received = await stage.test.waitForReceived(120)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 120 }, (_, index) => `m${index}`))
  })

  it('finds a post that is listed below newer ones, and passes none on twice', async () => {
    await using it = await openStage()
    // More than a page, all of which was read.
    for (let index = 0; index < 60; index++) await it.fake.deliver({ text: `newer ${index}` })
    await it.stage.test.waitForReceived(60)
    const earlier = post('clocks differ')
    it.fake.list({ ...earlier, indexedAt: new Date(1_763_640_000_500).toISOString() })
    expect((await it.stage.test.waitForReceived(61))[60]?.text).toBe('clocks differ')
    await it.stage.test.waitForSleep()
    await it.fake.deliver({ text: 'last' })
    await it.stage.test.waitForReceived(62)
    expect(it.stage.test.deliveries).toBe(62)
  })

  it('marks posts as seen once they are durable', async () => {
    await using it = await openStage()
    it.stage.test.isRefusing = true
    await it.fake.deliver({ text: 'hi' })
    await it.stage.connection.closed
    expect(it.fake.seen).toEqual([])
    it.stage.test.isRefusing = false
    await it.stage.reopen()
    expect(it.fake.seen).toHaveLength(1)
  })

  it('leaves out what is no post, and goes on', async () => {
    await using it = await openStage()
    it.fake.list({ ...post('x'), uri: 5 })
    it.fake.list({ ...post('x'), record: { $type: 'app.bsky.feed.like' } })
    it.fake.list({ ...post('x'), indexedAt: 'yesterday' })
    await it.fake.deliver({ text: 'after' })
    expect((await it.stage.test.waitForReceived(1))[0]?.text).toBe('after')
  })
})

describe('posting on Bluesky', () => {
  const context = async (it: Awaited<ReturnType<typeof openStage>>) => {
    const id = await it.fake.deliver({ text: 'a question' })
    const [message] = await it.stage.test.waitForReceived(1)
    return { id, to: { chatId: BOT.did, threadId: message?.threadId ?? '', replyContext: message?.replyContext ?? {} } }
  }

  it('writes the parts of an answer one below the other, and each at its place when it is sent again', async () => {
    await using it = await openStage()
    const { id, to } = await context(it)
    const first = await it.stage.connection.send(it.stage.message('one', { to, replyTo: id }))
    const message = it.stage.message('two', { to })
    const second = await it.stage.connection.send(message)
    expect(await it.stage.connection.send(message)).toEqual({ ...second, wasSentBefore: true })
    await it.stage.connection.send(it.stage.message('three', { to }))
    expect(it.fake.sent.map(({ replyTo }) => replyTo)).toEqual([id, first.id, second.id])
    expect(new Set(it.fake.sent.map(({ threadId }) => threadId))).toEqual(new Set([id]))
    expect(it.fake.violations).toEqual([])
  })

  it('answers a post that it knows by its address alone, in the thread of that post', async () => {
    await using it = await openStage()
    const question = await it.fake.deliver({ text: 'in a thread', threadId: it.fake.chats.thread, isGroup: true })
    await it.stage.connection.send(it.stage.message('there', { replyTo: question }))
    await it.stage.connection.send(it.stage.message('unasked', { to: { chatId: BOT.did, threadId: question } }))
    expect(it.fake.sent).toMatchObject([
      { threadId: it.fake.chats.thread, replyTo: question },
      { threadId: it.fake.chats.thread, replyTo: question },
    ])
    const gone = it.stage.message('to nobody', { replyTo: 'at://did:plc:ada/app.bsky.feed.post/3kgone2222222' })
    await expect(it.stage.connection.send(gone)).rejects.toMatchObject({ reason: 'not_found', retry: 'never' })
  })

  it('marks addresses as links, and no name as a mention', async () => {
    await using it = await openStage()
    const text = 'Für @ada.bsky.test: https://example.org/ä?a=1, (https://example.org/b_(c)'
    const { id } = await it.stage.connection.send(it.stage.message(text))
    const facets = it.fake.recordOf(id)?.facets as { index: { byteStart: number; byteEnd: number } }[]
    const shown = facets.map(({ index }) => Buffer.from(text).subarray(index.byteStart, index.byteEnd).toString())
    expect(shown).toEqual(['https://example.org/ä?a=1', 'https://example.org/b_(c)'])
    expect(JSON.stringify(facets)).not.toContain('mention')
  })

  it('names files that are no pictures, and shows more than four pictures in a second post', async () => {
    await using it = await openStage()
    const pictures = Array.from({ length: 5 }, () => attachmentOf(PICTURE))
    const file = attachmentOf({ kind: 'file', name: 'notes.txt', mime: 'text/plain', bytes: Buffer.from('x') })
    const message = it.stage.message('look', { attachments: [...pictures, file] })
    const { id } = await it.stage.connection.send(message)
    expect(await it.stage.connection.send(message)).toMatchObject({ id })
    expect(it.fake.sent.map(({ text, files, replyTo }) => [text, files.length, replyTo])).toEqual([
      ['look', 4, undefined],
      ['', 1, id],
      ['[The file notes.txt was not sent: pictures only here.]', 0, it.fake.sent[1]?.id],
    ])
  })

  it('makes two posts of what has too many bytes for one', async () => {
    await using it = await openStage()
    await it.stage.connection.send(it.stage.message('👩‍👩‍👧‍👦'.repeat(200)))
    const [first, second] = it.fake.sent
    expect(`${first?.text}${second?.text}`).toBe('👩‍👩‍👧‍👦'.repeat(200))
    expect(second?.replyTo).toBe(first?.id)
  })

  it('reads no file but pictures of posts', async () => {
    await using it = await openStage()
    for (const reference of [{ did: 'did:plc:ada/..', cid: 'a' }, { did: 'did:plc:ada', cid: '../x' }, { cid: 'a' }])
      await expect(
        (async () => it.stage.connection.readAttachment?.(reference, AbortSignal.timeout(1000)))(),
      ).rejects.toThrow()
  })
})

describe('the session on Bluesky', () => {
  it('is kept, so that a new connection does not sign in', async () => {
    await using it = await openStage()
    await it.stage.reopen()
    expect([it.fake.signIns, it.fake.refreshes]).toEqual([1, 0])
  })

  it('is refreshed once for all requests that found that it has expired', async () => {
    await using it = await openStage()
    it.fake.expire()
    await Promise.all(['one', 'two', 'three'].map((text) => it.stage.connection.send(it.stage.message(text))))
    expect([it.fake.signIns, it.fake.refreshes]).toEqual([1, 1])
    expect(it.fake.sent).toHaveLength(3)
  })

  it('begins again with the password when it cannot be refreshed', async () => {
    await using it = await openStage()
    it.fake.expire(true)
    await it.stage.connection.send(it.stage.message('hi'))
    expect([it.fake.signIns, it.fake.refreshes]).toEqual([2, 0])
  })

  it('is not that of another password', async () => {
    await using it = await openStage()
    await using other = new ChannelStage(adapter, it.fake, { ...it.fake.config, token: 'another-password' })
    for (const [key, value] of it.stage.test.secrets) other.test.secrets.set(key, value)
    await expect(other.open()).rejects.toMatchObject({ reason: 'auth', retry: 'never' })
  })
})

const image = { alt: 'x', image: { $type: 'blob', ref: { $link: 'bafkreia' }, mimeType: 'image/png', size: 1 } }
testHostileInput(
  'bluesky',
  post('@helper.bsky.test hi', {
    facets: [mentionFacet('@helper.bsky.test')],
    reply: { root: { uri: 'at://a/b/c', cid: 'd' }, parent: { uri: `at://${BOT.did}/b/c`, cid: 'd' } },
    embed: { media: { images: [image] } },
  }),
  decode,
)
