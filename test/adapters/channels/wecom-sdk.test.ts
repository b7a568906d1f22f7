import { WSClient } from '@wecom/aibot-node-sdk'
import type { BaseMessage, WsFrame } from '@wecom/aibot-node-sdk'
import { decrypt, encrypt, getSignature } from '@wecom/crypto'
import { expect, it } from 'vitest'
import adapter from '../../../adapters/channels/wecom/adapter.ts'
import { decryptMessage } from '../../../adapters/channels/wecom/cipher.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { FakeWeComApp } from '../../support/platforms/wecom-app.ts'
import { startFakeWeComBot } from '../../support/platforms/wecom-bot.ts'
import { sealForWeCom } from '../../support/platforms/wecom-crypto.ts'

// WeCom's own client of robots against the fake, and its encryption against that of the adapter and of the fake.

const silent = (): void => {}
const logger = { debug: silent, info: silent, warn: silent, error: silent }

it('its client subscribes, receives, answers, sends and uploads', async () => {
  await using fake = await startFakeWeComBot()
  const { bot_id: botId = '', token: secret = '', base_url: base = '' } = fake.config as Record<string, string>
  const client = new WSClient({ botId, secret, wsUrl: base.replace('http', 'ws'), logger })
  const frames: WsFrame<BaseMessage>[] = []
  client.on('message', (frame) => void frames.push(frame))
  client.connect()
  await fake.waitForListener?.()
  const picture = { kind: 'image' as const, name: 'a.png', mime: 'image/png', bytes: Buffer.from('a picture') }
  await fake.deliver({ text: 'one' })
  await fake.deliver({ text: '', files: [picture] })
  await expect.poll(() => frames.length).toBe(2)
  const [question, file] = frames
  expect(question?.body?.['text']).toEqual({ content: 'one' })
  const { url, aeskey } = (file?.body?.['image'] ?? {}) as { url: string; aeskey: string }
  expect((await client.downloadFile(url, aeskey)).buffer.toString()).toBe('a picture')
  await client.replyStream(question!, 'stream-1', 'an answer', true)
  await client.sendMessage('zhangsan', { msgtype: 'markdown', markdown: { content: 'unasked' } })
  expect(fake.sent).toMatchObject([{ text: 'an answer' }, { text: 'unasked', chatId: 'user:zhangsan' }])
  const uploaded = await client.uploadMedia(Buffer.alloc(600_000, 7), { type: 'file', filename: 'a.bin' })
  expect(uploaded.media_id).toMatch(/^media-/)
  client.disconnect()
  expect(fake.violations).toEqual([])
})

it('its encryption and that of the adapter read each other', () => {
  const key = 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG'
  for (const text of ['', 'Grüße', 'x'.repeat(1000)]) {
    expect(decryptMessage(key, encrypt(key, text, 'ww1'))).toEqual({ text, id: 'ww1' })
    expect(decrypt(key, sealForWeCom(key, text, 'ww1'))).toMatchObject({ message: text, id: 'ww1' })
  }
})

it('the adapter takes what its library signs and encrypts', async () => {
  const fake = await FakeWeComApp.start()
  await using stage = new ChannelStage(adapter, fake)
  await stage.open()
  const { encoding_aes_key: key, callback_token: token, corp_id: corp } = fake.config
  const content = '<MsgType>text</MsgType><Content><![CDATA[hello]]></Content><MsgId>1</MsgId>'
  const encrypted = encrypt(key, fake.message(content), corp)
  const timestamp = String(Math.floor(Date.now() / 1000))
  const signature = getSignature(token, timestamp, 'nonce', encrypted)
  const { status } = await stage.receiveWebhook({
    method: 'POST',
    query: { msg_signature: signature, timestamp, nonce: 'nonce' },
    headers: {},
    body: Buffer.from(`<xml><Encrypt><![CDATA[${encrypted}]]></Encrypt></xml>`),
  })
  expect([status, stage.test.received[0]?.text]).toEqual([200, 'hello'])
})
