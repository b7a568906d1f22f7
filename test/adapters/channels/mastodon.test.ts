import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/mastodon/adapter.ts'
import { decodeStatus } from '../../../adapters/channels/mastodon/decode.ts'
import { encodePost, visibilityOf } from '../../../adapters/channels/mastodon/encode.ts'
import { findError } from '../../../adapters/channels/mastodon/errors.ts'
import { Status } from '../../../adapters/channels/mastodon/wire.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { PICTURE } from '../../contract/channel-checks/check.ts'
import { parsed, testHostileInput } from '../../support/hostile-input.ts'
import { startFakeMastodon } from '../../support/platforms/mastodon.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await startFakeMastodon()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const file = (name: string, mime: string, kind: 'image' | 'video' | 'file') =>
  attachmentOf({ name, mime, kind, bytes: Buffer.from(name) })

describe('mastodon', () => {
  it('a thread is that of its first post, an answer stays in it, tells its author, and is not more public', async () => {
    await using it = await openStage({ visibility: 'public' })
    const root = await it.fake.post({ text: 'hi', visibility: 'public' })
    await it.fake.post({ text: 'and?', visibility: 'private', replyTo: root, from: it.fake.person2 })
    const [, message] = await it.stage.test.waitForReceived(2)
    expect(message).toMatchObject({
      chat: { id: 'timeline', kind: 'group' },
      threadId: root,
      sender: { id: '111', name: 'Ada', handle: '@ada@elsewhere.test' },
      text: 'and?',
      mentionsBot: true,
      replyTo: root,
    })
    const to = { chatId: 'timeline', threadId: root, replyContext: message?.replyContext ?? {} }
    const sent = await it.stage.connection.send(it.stage.message('well', { to }))
    expect(it.fake.sent[0]).toMatchObject({ text: 'well', replyTo: message?.id, threadId: root })
    expect(it.fake.visibilityOf(sent.id)).toBe('private')
    await it.fake.post({ text: 'thanks', visibility: 'public', replyTo: sent.id })
    expect((await it.stage.test.waitForReceived(3))[2]?.threadId).toBe(root)
    // The thread of an answer of its own is known.
    expect(it.fake.requests.filter((route) => route.endsWith('/context'))).toHaveLength(0)
  })

  it('asks for the thread of a post whose parent it does not know', async () => {
    await using it = await openStage()
    it.fake.dropNextEvent()
    const root = await it.fake.post({ text: 'a', visibility: 'public', isOwn: true })
    const middle = await it.fake.post({ text: 'b', visibility: 'public', isOwn: true, replyTo: root })
    await it.fake.post({ text: 'lost' })
    await it.fake.post({ text: 'c', visibility: 'public', replyTo: middle })
    const received = await it.stage.test.waitForReceived(2)
    expect(received.map(({ text, threadId }) => [text, threadId])).toEqual([
      ['lost', undefined],
      ['c', root],
    ])
  })

  it('the parts of an answer answer one another', async () => {
    await using it = await openStage()
    const asked = await it.fake.post({ text: 'hi', visibility: 'public' })
    const [message] = await it.stage.test.waitForReceived(1)
    const to = { chatId: 'timeline', threadId: asked, replyContext: message?.replyContext ?? {} }
    await it.stage.connection.send(it.stage.message('one', { to, replyTo: asked }))
    await it.stage.connection.send(it.stage.message('two', { to }))
    await it.stage.connection.send(it.stage.message('three', { to }))
    const [one, two, three] = it.fake.sent
    expect([one?.replyTo, two?.replyTo, three?.replyTo]).toEqual([asked, one?.id, two?.id])
  })

  it('a post to nobody in particular has the visibility of the configuration and mentions nobody', async () => {
    await using it = await openStage({ visibility: 'private' })
    const { id } = await it.stage.connection.send(it.stage.message('news', { to: { chatId: 'timeline' } }))
    expect(it.fake.sent).toMatchObject([{ text: 'news', chatId: 'timeline' }])
    expect(it.fake.visibilityOf(id)).toBe('private')
  })

  it('an answer is the more private of both, and a visibility of another server is for the mentioned alone', () => {
    expect(visibilityOf('public', 'unlisted')).toBe('unlisted')
    expect(visibilityOf('private', 'unlisted')).toBe('private')
    expect(visibilityOf('mutuals_only', 'public')).toBe('direct')
    expect(visibilityOf(undefined, 'public')).toBe('public')
  })

  it('what an agent writes mentions nobody: a direct message goes to who asked alone', () => {
    const text = '@eve @@bob (@al@evil.test), a@b.org, https://x.test/@carol'
    const fields = { text, answers: '1', visibility: 'direct', media: [] } as const
    expect(encodePost({ ...fields, acct: 'ada@elsewhere.test' }).status).toBe(
      '@ada@elsewhere.test @\u200beve @@\u200bbob (@\u200bal@evil.test), a@b.org, https://x.test/@carol',
    )
  })

  it('finds an event that the stream has lost', async () => {
    await using it = await openStage()
    it.fake.dropNextEvent()
    await it.fake.deliver({ text: 'lost' })
    await it.stage.test.waitForSleep()
    it.stage.test.wake()
    expect((await it.stage.test.waitForReceived(1))[0]?.text).toBe('lost')
  })

  it('reads several pages of what came while it was away, in order, and nothing from before the first start', async () => {
    const fake = await startFakeMastodon()
    await fake.deliver({ text: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.disconnect?.()
    for (let index = 0; index < 90; index++) await fake.deliver({ text: `m${index}` })
    await stage.reopen()
    const received = await stage.test.waitForReceived(90)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 90 }, (_, index) => `m${index}`))
  })

  it('leaves out what is no mention and what cannot be read, and goes on', async () => {
    await using it = await openStage()
    it.fake.sendFrame({ stream: ['user:notification'], event: 'notification', payload: '{"type":"favourite"}' })
    it.fake.sendFrame({ stream: ['user'], event: 'filters_changed' })
    await it.fake.post({ text: 'odd', from: { ...it.fake.person2, acct: 'a b' } })
    await it.fake.post({ text: 'a bot', from: { ...it.fake.person2, bot: true } })
    await it.fake.deliver({ text: 'after' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['after'])
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('a refused subscription needs another token', async () => {
    await using it = await openStage()
    it.fake.sendFrame({ error: 'Error: Access token does not have the required scopes', status: 401 })
    expect(await it.stage.connection.closed).toMatchObject({ retry: 'never' })
  })

  it('sends the token to no server without encryption that the instance does not have itself', async () => {
    const fake = await startFakeMastodon()
    await using stage = new ChannelStage(adapter, fake)
    fake.nameStreaming('http://other.test')
    await stage.open()
    await fake.deliver({ text: 'hi' })
    expect(await stage.test.waitForReceived(1)).toHaveLength(1)
  })

  it('posts four pictures at once, another file alone, and says what is not taken', async () => {
    await using it = await openStage()
    const pictures = [1, 2, 3, 4, 5].map((index) => file(`${index}.png`, 'image/png', 'image'))
    const attachments = [file('a.mp4', 'video/mp4', 'video'), ...pictures, file('b.pdf', 'application/pdf', 'file')]
    await it.stage.connection.send(it.stage.message('look', { attachments }))
    const sent = await it.fake.waitForSent(3)
    expect(sent.map(({ text, files }) => [text, files.map(({ name }) => name)])).toEqual([
      ['look', ['1.png', '2.png', '3.png', '4.png']],
      ['[The file b.pdf was not sent: the instance does not take it.]', ['5.png']],
      ['', ['a.mp4']],
    ])
    expect([sent[1]?.replyTo, sent[2]?.replyTo]).toEqual([sent[0]?.id, sent[1]?.id])
    expect(it.fake.violations).toEqual([])
  })

  it('waits until a file is processed', async () => {
    await using it = await openStage()
    it.fake.processSlowly()
    const sending = it.stage.connection.send(it.stage.message('look', { attachments: [attachmentOf(PICTURE)] }))
    const shown = expect.poll(() => {
      it.stage.test.wake()
      return it.fake.sent
    })
    await shown.toMatchObject([{ text: 'look', files: [{ name: 'dot.png' }] }])
    await sending
    expect(it.fake.violations).toEqual([])
  })

  it('reads no file of another kind of address', async () => {
    await using it = await openStage()
    await expect(
      (async () => it.stage.connection.readAttachment?.({ url: 'file:///etc/passwd' }, AbortSignal.timeout(1000)))(),
    ).rejects.toThrow()
  })

  it('a token without the scope is auth, and a post that may not be written is not', () => {
    const answer = (error: string) => ({ status: 403, ok: false, body: { error }, header: () => undefined })
    expect(findError(answer('This action is outside the authorized scopes'), 0)?.reason).toBe('auth')
    expect(findError(answer('This action is not allowed'), 0)?.reason).toBeUndefined()
  })
})

describe('the text of a post on mastodon', () => {
  it('has paragraphs, whole addresses, and signs as they were written', () => {
    const link =
      '<a href="https://example.org/a?b=1&amp;c"><span class="invisible">https://</span><span class="ellipsis">example.org/a?b</span><span class="invisible">=1&amp;c</span></a>'
    const content = `<p>a &lt;b&gt;<br />&#39;c&#39;</p><p>${link}</p>`
    expect(decodeStatus({ ...status, content }, context)?.text).toBe("a <b>\n'c'\n\nhttps://example.org/a?b=1&c")
  })

  it('does not have the mention of the bot, and has those of others, of the same name on another server, too', () => {
    const read = (content: string) => decodeStatus({ ...status, content }, context)?.text
    expect(read('<p>@svc, hello</p>')).toBe('hello')
    expect(read('<p>@svc@mastodon.test @bob hello</p>')).toBe('@bob hello')
    expect(read('<p>@svc@other.test hello</p>')).toBe('@svc@other.test hello')
    expect(read('<p>mail me@svc.example</p>')).toBe('mail me@svc.example')
  })

  it('has the content warning in front', () => {
    expect(decodeStatus({ ...status, spoiler_text: 'food' }, context)?.text).toBe('food\n\nhi')
  })

  it('is that of another bot if the operator wants it', () => {
    const ofBot = { ...status, account: { ...author, bot: true } }
    expect(decodeStatus(ofBot, context)).toBeUndefined()
    expect(decodeStatus(ofBot, { ...context, ignoreBots: false })?.sender.isBot).toBeUndefined()
    expect(decodeStatus(ofBot, { ...context, ignoreBots: false })?.text).toBe('hi')
  })

  it('leaves out what the bot wrote', () => {
    expect(decodeStatus({ ...status, account: context.bot }, context)).toBeUndefined()
  })
})

const author = { id: '110', username: 'ada', acct: 'ada', display_name: 'A\u202eda', bot: false }
const status: Status = {
  id: '1',
  created_at: '2026-11-20T12:00:00.000Z',
  account: author,
  content: '<p><a href="x">@<span>svc</span></a> hi</p>',
  spoiler_text: '',
  visibility: 'public',
  in_reply_to_id: '0',
  media_attachments: [{ id: '2', type: 'image', url: 'https://files.test/a.png', description: 'a' }],
}
const context = {
  bot: { ...author, id: '109', username: 'svc', acct: 'svc' },
  domain: 'mastodon.test',
  ignoreBots: true,
  root: '0',
}
testHostileInput(
  'mastodon',
  status,
  parsed(Status, (read) => decodeStatus(read, context)),
)
