import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import adapter from '../../../adapters/channels/webhook/adapter.ts'
import { ChannelStage } from '../../contract/channel-stage.ts'
import { FakeWebhook } from '../../support/platforms/webhook.ts'

/** The signature that `openssl` makes. */
function openssl(content: string, secret: string): string {
  const output = execFileSync('openssl', ['dgst', '-sha256', '-hmac', secret, '-hex'], { input: content }).toString()
  return `sha256=${output.trim().split(' ').at(-1)}`
}

async function openStage(config: Readonly<Record<string, unknown>> = {}) {
  const fake = await FakeWebhook.start()
  const stage = new ChannelStage(adapter, fake, { ...fake.config, ...config })
  await stage.open()
  return { fake, stage, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}
const post = (body: string, headers: Readonly<Record<string, string>>) => ({
  method: 'POST' as const,
  headers,
  body: Buffer.from(body),
})
const body = JSON.stringify({ sender_id: 7, message: 'signed by openssl' })

describe('webhook', () => {
  it('accepts what openssl signs, with and without the timestamp', async () => {
    await using stage = await openStage()
    const { token } = stage.fake.config
    const stamp = String(Date.now())
    const plain = { 'x-webhook-timestamp': stamp, 'x-webhook-signature': openssl(body, token) }
    const timed = { 'x-webhook-timestamp': stamp, 'x-webhook-timed-signature': openssl(`${stamp}.${body}`, token) }
    expect((await stage.stage.receiveWebhook(post(body, plain))).status).toBe(200)
    expect((await stage.stage.receiveWebhook(post(body, timed))).status).toBe(200)
    expect(stage.stage.test.received.map(({ text, sender }) => [text, sender.id])).toEqual([['signed by openssl', '7']])
    expect(stage.stage.test.deliveries).toBe(2)
  })

  it('refuses a signature of the body alone where timestamps have to be signed', async () => {
    await using stage = await openStage({ require_signed_timestamp: true })
    const headers = {
      'x-webhook-timestamp': String(Date.now()),
      'x-webhook-signature': openssl(body, stage.fake.config.token),
    }
    expect((await stage.stage.receiveWebhook(post(body, headers))).status).toBe(401)
    await stage.fake.deliver({ text: 'timed' })
    expect(stage.stage.test.received.map(({ text }) => text)).toEqual(['timed'])
  })

  it.each([
    ['an empty message', '{"sender_id":"a","message":" "}', 200],
    ['no sender', '{"message":"x"}', 400],
    ['no JSON', '{', 400],
    ['a list', '[]', 400],
    ['a number as text', '{"sender_id":"a","message":5}', 400],
  ])('receives nothing of %s', async (_, text, status) => {
    await using stage = await openStage()
    const headers = {
      'x-webhook-timestamp': String(Date.now()),
      'x-webhook-signature': openssl(text, stage.fake.config.token),
    }
    expect((await stage.stage.receiveWebhook(post(text, headers))).status).toBe(status)
    expect(stage.stage.test.deliveries).toBe(0)
  })

  it('sends nothing to addresses that are private, and follows no redirect', async () => {
    for (const callback_url of ['http://169.254.169.254/latest', 'http://10.0.0.1/', 'http://[::1]:9/']) {
      await using stage = await openStage({ callback_url })
      await expect(stage.stage.connection.send(stage.stage.message('x'))).rejects.toMatchObject({ code: 'forbidden' })
    }
  })

  it('says that there is no address to send to', async () => {
    await using stage = await openStage({ callback_url: undefined })
    await expect(stage.stage.connection.send(stage.stage.message('x'))).rejects.toThrow('has no callback_url')
  })
})
