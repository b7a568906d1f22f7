import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/zulip/adapter.ts'
import { attachmentOf, ChannelStage } from '../../contract/channel-stage.ts'
import { FakeZulip } from '../../support/platforms/zulip.ts'

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeZulip.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

describe('zulip', () => {
  it('a topic is a thread of its channel, and what answers none goes to the topic of the configuration', async () => {
    await using it = await openStage({ topic: 'news' })
    await it.fake.deliver({ text: 'hi', threadId: 'ferries', mentionsBot: true })
    expect((await it.stage.test.waitForReceived(1))[0]).toMatchObject({
      chat: { id: '42', kind: 'group', title: 'general' },
      threadId: 'ferries',
      sender: { id: '8', name: 'Ada', handle: 'ada@zulip.test' },
      text: 'hi',
      mentionsBot: true,
    })
    await it.stage.connection.send(it.stage.message('unasked', { to: { chatId: '42' } }))
    expect((await it.fake.waitForSent(1))[0]).toMatchObject({ chatId: '42', threadId: 'news' })
  })

  it('reads the channels of the configuration only, and every direct message', async () => {
    await using it = await openStage({ streams: ['other'] })
    await it.fake.deliver({ text: 'not here', isGroup: true })
    await it.fake.deliver({ text: 'direct' })
    expect((await it.stage.test.waitForReceived(1)).map(({ text }) => text)).toEqual(['direct'])
  })

  it('reads several pages of what came while it was away, in order, and nothing from before the first start', async () => {
    const fake = await FakeZulip.start()
    await fake.deliver({ text: 'old' })
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.disconnect()
    for (let index = 0; index < 450; index++) await fake.deliver({ text: `m${index}` })
    await stage.reopen()
    const received = await stage.test.waitForReceived(450)
    expect(received.map(({ text }) => text)).toEqual(Array.from({ length: 450 }, (_, index) => `m${index}`))
  })

  it('a message that moves to another topic, or gets a preview, is not edited', async () => {
    await using it = await openStage()
    const id = Number(await it.fake.deliver({ text: 'first' }))
    it.fake.emit({ type: 'update_message', message_id: id, user_id: 8, subject: 'elsewhere' })
    it.fake.emit({ type: 'update_message', message_id: id, content: 'x', rendering_only: true })
    // It was removed before it could be read.
    it.fake.emit({ type: 'update_message', message_id: 999, user_id: 8, content: 'x', rendering_only: false })
    it.fake.emit({ type: 'message', message: { id: 'x' } })
    it.fake.emit({ type: 'heartbeat' })
    await it.fake.deliver({ text: 'second' })
    expect((await it.stage.test.waitForReceived(2)).map(({ text }) => text)).toEqual(['first', 'second'])
    expect(it.stage.test.logged.join('\n')).toContain('a form that cannot be read')
  })

  it('tells the bots of the organization, and those of Zulip itself, from people', async () => {
    await using it = await openStage()
    it.fake.writeAsBot('build failed', { sender_id: 30 })
    it.fake.writeAsBot('you were subscribed', { sender_id: 5, sender_realm_str: 'zulipinternal' })
    it.fake.writeAsBot('hello', { sender_id: 6, sender_email: 'welcome-bot@zulip.com', sender_realm_str: 'zulip' })
    await it.fake.deliver({ text: 'hi' })
    const received = await it.stage.test.waitForReceived(4)
    expect(received.map(({ sender }) => sender.isBot)).toEqual([true, true, true, undefined])
  })

  it('what an agent writes mentions nobody', async () => {
    await using it = await openStage()
    const { id } = await it.stage.connection.send(it.stage.message('@**all** and @*staff*'))
    expect(it.fake.sent.map(({ text }) => text)).toEqual(['@\u200B**all** and @\u200B*staff*'])
    await it.stage.connection.edit?.({ id }, it.stage.message('@**topic**'))
    expect(it.fake.sent.map(({ text }) => text)).toEqual(['@\u200B**topic**'])
  })

  it('puts files that do not fit beside the text into a second message', async () => {
    await using it = await openStage()
    const file = { kind: 'file' as const, name: 'a].txt', mime: 'text/plain', bytes: Buffer.from('a') }
    const attachments = [attachmentOf(file)]
    await it.stage.connection.send(it.stage.message('x'.repeat(10_000), { attachments }))
    const sent = await it.fake.waitForSent(2)
    expect(sent.map(({ files }) => files.length)).toEqual([0, 1])
    expect(sent[1]?.text).toMatch(/^\[a_\.txt\]\(\/user_uploads\//)
  })

  it('reads no file outside of the uploads', async () => {
    await using it = await openStage()
    const above = [
      '/user_uploads/../users/me',
      '/user_uploads/%2e%2e/users/me',
      String.raw`/user_uploads/.%2E\users/me`,
    ]
    const unused = Response.json({ url: '/temporary/x' })
    it.stage.test.nextAnswer = unused
    for (const path of ['/users/me', ...above, '/user_uploads/a?b=c', 'https://example.org/x'])
      await expect(
        (async () => it.stage.connection.readAttachment?.({ path }, AbortSignal.timeout(1000)))(),
      ).rejects.toThrow()
    expect(it.stage.test.nextAnswer).toBe(unused)
  })
})
