import { createReadStream } from 'node:fs'
import { AESCipher, Client, EventDispatcher, LoggerLevel, normalize, WSClient } from '@larksuiteoapi/node-sdk'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startFakeFeishu } from '../../support/platforms/feishu.ts'
import type { FakeFeishu } from '../../support/platforms/feishu.ts'

// Feishu's own client against the fake: what it cannot work with is not what Feishu does.

beforeAll(() => {
  for (const method of ['log', 'info', 'warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => {})
})
afterAll(() => vi.restoreAllMocks())

type Event = Parameters<typeof normalize>[0]

function clientOf(fake: FakeFeishu) {
  const { app_id: appId, token: appSecret, base_url: domain } = fake.config as Record<string, string>
  return { appId: appId ?? '', appSecret: appSecret ?? '', domain: domain ?? '', loggerLevel: LoggerLevel.fatal }
}

it('its client of the long connection receives whole events and pieces, and its answers are understood', async () => {
  await using fake = await startFakeFeishu()
  // Its answers to larger numbers have other ones.
  fake.logId = 7n
  const texts: string[] = []
  const eventDispatcher = new EventDispatcher({ loggerLevel: LoggerLevel.fatal }).register({
    'im.message.receive_v1': async (data) => {
      const event = await normalize(data as Event, { botIdentity: { openId: 'ou_bot', name: 'Helper' } })
      texts.push(`${event.content} ${event.chatType} ${event.mentionedBot}`)
    },
    'card.action.trigger': async (data: { action: { value: { answer: string } } }) => {
      texts.push(data.action.value.answer)
    },
  })
  const client = new WSClient(clientOf(fake))
  await client.start({ eventDispatcher })
  // Until its first sign of life the client loses what comes.
  await expect.poll(() => fake.pings).toBe(1)
  const ids = [await fake.deliver({ text: 'one' })]
  fake.fragments = 4
  ids.push(await fake.deliver({ text: 'two', isGroup: true, mentionsBot: true }))
  await expect.poll(() => fake.acknowledged).toEqual(ids)
  expect(texts).toEqual(['one p2p false', 'two group true'])
  client.close({ force: true })
  expect(fake.violations).toEqual([])
})

it('its dispatcher verifies and decrypts what the fake sends to the webhook, and refuses a forgery', async () => {
  await using fake = await startFakeFeishu({ webhook: true })
  const { encrypt_key: encryptKey = '', verification_token: verificationToken = '' } = fake.config as Record<
    string,
    string
  >
  const texts: string[] = []
  const dispatcher = new EventDispatcher({ encryptKey, verificationToken, loggerLevel: LoggerLevel.fatal }).register({
    'im.message.receive_v1': async ({ message }) => {
      texts.push(message.content)
    },
  })
  fake.setWebhook(async ({ headers, body }) => {
    const data = Object.assign(Object.create({ headers }), JSON.parse(Buffer.from(body).toString()))
    const done = await dispatcher.invoke(data)
    return { status: 200, body: String(done) }
  })
  await fake.deliver({ text: 'signed and encrypted' })
  expect(texts).toEqual(['{"text":"signed and encrypted"}'])
  const forged = fake.request(fake.messageEvent({ content: 'forged' }), { key: 'another' })
  const data = Object.assign(
    Object.create({ headers: forged.headers }),
    JSON.parse(Buffer.from(forged.body).toString()),
  ) as { encrypt: string }
  await dispatcher.invoke(data)
  expect(texts).toHaveLength(1)
  expect(new AESCipher(encryptKey).decrypt(data.encrypt)).toContain('forged')
})

it('its client sends, replies, edits, reacts, uploads and removes', async () => {
  await using fake = await startFakeFeishu()
  const { im } = new Client(clientOf(fake))
  const card = (content: string) =>
    JSON.stringify({
      schema: '2.0',
      config: { update_multi: true },
      body: { elements: [{ tag: 'markdown', content }] },
    })
  const create = (uuid: string) =>
    im.v1.message.create({
      params: { receive_id_type: 'chat_id' },
      data: { receive_id: 'oc_direct', msg_type: 'interactive', content: card('hello'), uuid },
    })
  const id = (await create('key-1')).data?.message_id ?? ''
  expect((await create('key-1')).data?.message_id).toBe(id)
  const data = { msg_type: 'interactive', content: card('reply'), uuid: 'key-2' }
  await im.v1.message.reply({ path: { message_id: id }, data })
  await im.v1.message.patch({ path: { message_id: id }, data: { content: card('changed') } })
  await im.v1.messageReaction.create({
    path: { message_id: id },
    data: { reaction_type: { emoji_type: 'THUMBSUP' } },
  })
  const file = createReadStream(import.meta.filename)
  const uploaded = await im.v1.file.create({ data: { file_type: 'stream', file_name: 'a.ts', file } })
  expect(uploaded?.file_key).toMatch(/^file_/)
  expect(fake.sent).toMatchObject([{ text: 'changed' }, { text: 'reply', replyTo: id }])
  expect(fake.reactions).toEqual([{ messageId: id, emoji: '👍' }])
  await im.v1.message.delete({ path: { message_id: id } })
  expect(fake.sent).toHaveLength(1)
  expect(fake.violations).toEqual([])
})
