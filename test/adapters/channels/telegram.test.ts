import { Api } from 'grammy'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/telegram/adapter.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { FakeTelegram } from '../../support/platforms/telegram.ts'

async function openStage(options: { readonly webhook?: boolean } = {}) {
  const fake = await FakeTelegram.start(options)
  const stage = new ChannelStage(adapter, fake)
  return { fake, stage, connection: await stage.open(), [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

describe('telegram', () => {
  it('goes on after the last durable update, also in a new connection', async () => {
    await using stage = await openStage()
    await stage.fake.deliver({ text: 'one' })
    await stage.fake.deliver({ text: 'two' })
    await stage.stage.test.waitForReceived(2)
    await stage.stage.reopen()
    await stage.fake.deliver({ text: 'three' })
    await stage.stage.test.waitForReceived(3)
    expect(stage.stage.test.deliveries).toBe(3)
    expect(Number(stage.stage.test.state.get('offset'))).toBeGreaterThan(500)
  })

  it('reports a second program that polls, and ends', async () => {
    await using stage = await openStage()
    await stage.fake.waitForListener()
    const second = new Api(stage.fake.token, { apiRoot: stage.fake.origin })
    await second.getUpdates({ timeout: 0 })
    const end = await stage.connection.closed
    expect(end).toMatchObject({ retry: 'later', reason: expect.stringContaining('other getUpdates request') })
  })

  it('takes the place of a webhook that another program left', async () => {
    await using fake = await FakeTelegram.start()
    await new Api(fake.token, { apiRoot: fake.origin }).setWebhook('https://old.example/')
    await using stage = new ChannelStage(adapter, fake)
    await stage.open()
    await fake.deliver({ text: 'hello' })
    expect((await stage.test.waitForReceived(1))[0]?.text).toBe('hello')
  })

  it('notices that another program took the webhook', async () => {
    await using stage = await openStage({ webhook: true })
    await stage.stage.test.waitForSleep()
    await new Api(stage.fake.token, { apiRoot: stage.fake.origin }).deleteWebhook()
    stage.stage.test.wake()
    expect((await stage.connection.closed).reason).toContain('another program took the updates')
  })

  it('leaves out an update that cannot be read, and receives the next', async () => {
    await using stage = await openStage()
    await stage.fake.deliverUpdate({ update_id: 499, message: { message_id: 'x' } } as { update_id: number })
    await stage.fake.deliver({ text: 'readable' })
    expect((await stage.stage.test.waitForReceived(1))[0]?.text).toBe('readable')
  })

  it('sends text that Telegram cannot parse as plain text, once', async () => {
    await using stage = await openStage()
    const message = { ...stage.stage.message('<b>open'), plainText: 'open' }
    const sent = await stage.connection.send(message)
    expect(stage.fake.sent.map(({ text }) => text)).toEqual(['open'])
    await stage.connection.edit?.(sent, { ...message, text: '<x>', plainText: 'edited' })
    expect(stage.fake.sent.map(({ text }) => text)).toEqual(['edited'])
  })

  it('follows a group that became a supergroup, and remembers it', async () => {
    await using stage = await openStage()
    stage.fake.migrated.set('-55', -1_009_999)
    const to = { chatId: '-55' }
    await stage.connection.send(stage.stage.message('first', { to }))
    const calls = stage.fake.calls.length
    await stage.connection.send(stage.stage.message('second', { to }))
    expect(stage.fake.sent.map(({ chatId }) => chatId)).toEqual(['-1009999', '-1009999'])
    expect(stage.fake.calls.slice(calls).filter((method) => method === 'sendMessage')).toHaveLength(1)
  })

  it('keeps the first id of a group that became a supergroup, in this connection and the next', async () => {
    await using stage = await openStage()
    const { fake } = stage
    const from = { id: 1, first_name: 'Ada' }
    const say = (update_id: number, more: object) => {
      const message = {
        message_id: update_id,
        date: 1,
        chat: { id: -1_009_999, type: 'supergroup', title: 'Team' },
        from,
      }
      return fake.deliverUpdate({ update_id, message: { ...message, ...more } } as { update_id: number })
    }
    await say(600, { migrate_from_chat_id: -55 })
    await say(601, { text: 'one' })
    await stage.stage.test.waitForReceived(1)
    await stage.stage.reopen()
    await say(602, { text: 'two' })
    const received = await stage.stage.test.waitForReceived(2)
    expect(received.map(({ id, chat }) => [id, chat.id])).toEqual([
      ['-1009999:601', '-55'],
      ['-1009999:602', '-55'],
    ])
    await stage.stage.connection.send(stage.stage.message('answer', { to: { chatId: '-55' } }))
    expect(fake.sent.map(({ chatId }) => chatId)).toEqual(['-1009999'])
  })

  it('sends the files that are missing when a message is tried again', async () => {
    await using stage = await openStage()
    const file = {
      kind: 'file' as const,
      name: 'a.txt',
      mime: 'text/plain',
      size: 1,
      bytes: async () => Buffer.from('a'),
    }
    const message = stage.stage.message('two files', { attachments: [file, file] })
    stage.fake.fail({ kind: 'none' } as never)
    stage.fake.fail({ kind: 'server_error' })
    await expect(stage.connection.send(message)).rejects.toThrow('Bad Gateway')
    await stage.connection.send(message)
    expect(stage.fake.sent.map(({ text, files }) => [text, files.length])).toEqual([
      ['two files', 0],
      ['', 1],
      ['', 1],
    ])
  })

  it('says which messages are of somebody else', async () => {
    await using stage = await openStage()
    const base = { date: 1, chat: { id: 7, type: 'private' }, from: { id: 7, first_name: 'B' }, text: 'hi' }
    const origin = { type: 'hidden_user', sender_user_name: 'Eve', date: 1 }
    for (const [at, more] of [{}, { forward_origin: origin }, { forward_date: 1 }].entries())
      await stage.fake.deliverUpdate({ update_id: 901 + at, message: { ...base, message_id: at + 1, ...more } } as {
        update_id: number
      })
    const received = await stage.stage.test.waitForReceived(3)
    expect(received.map(({ isForwarded }) => isForwarded)).toEqual([undefined, true, true])
  })

  it('keeps links, and leaves out the mention and the suffix of a command', async () => {
    await using stage = await openStage()
    const chat = { id: -1, type: 'group', title: 'G' }
    const from = { id: 7, first_name: 'B' }
    const base = { date: 1, chat, from }
    const link = { type: 'text_link', offset: 4, length: 4, url: 'https://example.com/' }
    await stage.fake.deliverUpdate({
      update_id: 901,
      message: { ...base, message_id: 1, text: 'see this', entities: [link] },
    } as { update_id: number })
    const command = { type: 'bot_command', offset: 0, length: 17 }
    await stage.fake.deliverUpdate({
      update_id: 902,
      message: { ...base, message_id: 2, text: '/new@svc_test_bot now', entities: [command] },
    } as { update_id: number })
    const received = await stage.stage.test.waitForReceived(2)
    expect(received.map(({ text, mentionsBot }) => [text, mentionsBot])).toEqual([
      ['see [this](https://example.com/)', false],
      ['/new now', true],
    ])
  })
})

describe('the fake, used by a client of others', () => {
  it('answers grammY as Telegram does', async () => {
    await using fake = await FakeTelegram.start()
    const api = new Api(fake.token, { apiRoot: fake.origin })
    expect((await api.getMe()).username).toBe('svc_test_bot')
    const sent = await api.sendMessage(1111, '<b>hi</b>', { parse_mode: 'HTML' })
    await api.editMessageText(1111, sent.message_id, 'edited')
    await expect(api.editMessageText(1111, sent.message_id, 'edited')).rejects.toThrow('message is not modified')
    await expect(api.sendMessage(1111, '<b>', { parse_mode: 'HTML' })).rejects.toThrow("can't parse entities")
    fake.fail({ kind: 'rate_limit', retryAfterSecs: 3 })
    await expect(api.sendMessage(1111, 'x')).rejects.toMatchObject({ error_code: 429, parameters: { retry_after: 3 } })
    await api.sendChatAction(1111, 'typing')
    await api.setMessageReaction(1111, sent.message_id, [{ type: 'emoji', emoji: '👍' }])
    await fake.deliver({ text: 'polled' })
    const [update] = await api.getUpdates({ timeout: 0 })
    expect(update?.message?.text).toBe('polled')
    expect(await api.getUpdates({ timeout: 0, offset: (update?.update_id ?? 0) + 1 })).toEqual([])
  })
})
