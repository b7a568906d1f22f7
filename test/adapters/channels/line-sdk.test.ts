import { LineBotClient, validateSignature } from '@line/bot-sdk'
import { expect, it } from 'vitest'
import { signContent } from 'svc/channels'
import { FakeLine } from '../../support/platforms/line.ts'

// The client of LINE against our fake: what it cannot work with is not what LINE does.

it('LineBotClient asks who the bot is, pushes under a retry key, replies, and reads profiles and files', async () => {
  await using fake = await FakeLine.start()
  const { token, base_url: apiBaseURL, data_url: dataApiBaseURL } = fake.config
  const client = LineBotClient.fromChannelAccessToken({ channelAccessToken: token, apiBaseURL, dataApiBaseURL })
  expect(await client.getBotInfo()).toMatchObject({ displayName: 'Helper' })
  const push = { to: fake.chats.direct, messages: [{ type: 'text' as const, text: 'pushed' }] }
  const key = '123e4567-e89b-12d3-a456-426614174000'
  const { sentMessages } = await client.pushMessage(push, key)
  await expect(client.pushMessage(push, key)).rejects.toMatchObject({ status: 409 })
  expect(sentMessages[0]?.id).toBe(fake.sent[0]?.id)
  const { replyToken } = fake.event({ text: '' }) as { replyToken: string }
  await client.replyMessage({ replyToken, messages: [{ type: 'text', text: 'replied' }] })
  await expect(client.replyMessage({ replyToken, messages: [{ type: 'text', text: 'again' }] })).rejects.toMatchObject({
    status: 400,
  })
  await client.showLoadingAnimation({ chatId: fake.chats.direct, loadingSeconds: 20 })
  expect(await client.getProfile(fake.person)).toMatchObject({ displayName: 'Ada' })
  expect(await client.getGroupSummary(fake.chats.group)).toMatchObject({ groupName: 'Harbour' })
  fake.setWebhook(async () => ({ status: 200, body: '' }))
  const id = await fake.deliver({
    text: '',
    files: [{ kind: 'image', name: 'a', mime: 'image/png', bytes: Buffer.from('png') }],
  })
  const chunks: Buffer[] = []
  for await (const chunk of await client.getMessageContent(id)) chunks.push(chunk as Buffer)
  expect(Buffer.concat(chunks).toString()).toBe('png')
  expect(fake.sent.map(({ text }) => text)).toEqual(['pushed', 'replied'])
  expect(fake.violations).toEqual([])
})

it('validateSignature accepts what the fake signs, and what the channels check', async () => {
  await using fake = await FakeLine.start()
  const { body, headers } = fake.signed({ destination: 'U1', events: [] })
  const { channel_secret: secret } = fake.config
  const content = Buffer.from(body)
  expect(validateSignature(content, secret, headers['x-line-signature'] ?? '')).toBe(true)
  expect(validateSignature(content, secret, signContent(content, { secret, encoding: 'base64' }))).toBe(true)
  expect(validateSignature(content, 'another secret', headers['x-line-signature'] ?? '')).toBe(false)
})
