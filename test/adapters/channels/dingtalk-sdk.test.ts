import { DWClient, TOPIC_ROBOT } from 'dingtalk-stream'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startFakeDingTalk } from '../../support/platforms/dingtalk.ts'

// DingTalk's own client against the fake: what it cannot work with is not what DingTalk does.

beforeAll(() => {
  for (const method of ['log', 'info', 'warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => {})
})
afterAll(() => vi.restoreAllMocks())

it('its client receives messages, and its answers are understood', async () => {
  await using fake = await startFakeDingTalk()
  const { app_key: clientId = '', token: clientSecret = '', base_url: base } = fake.config as Record<string, string>
  const client = new DWClient({ clientId, clientSecret })
  // The address of the gateway is a constant of the client, so the test asks the fake instead.
  client.getEndpoint = async () => {
    const { subscriptions, ua } = client.getConfig()
    const response = await fetch(`${base}/v1.0/gateway/connections/open`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ clientId, clientSecret, subscriptions, ua }),
    })
    const { endpoint, ticket } = (await response.json()) as { endpoint: string; ticket: string }
    Reflect.set(client, 'dw_url', `${endpoint}?ticket=${encodeURIComponent(ticket)}`)
    return client
  }
  const texts: string[] = []
  client.registerCallbackListener(TOPIC_ROBOT, ({ headers, data }) => {
    texts.push((JSON.parse(data) as { text: { content: string } }).text.content.trim())
    client.socketCallBackResponse(headers.messageId, { status: 'SUCCESS' })
  })
  await client.connect()
  await fake.waitForListener?.()
  await fake.deliver({ text: 'one' })
  await fake.deliver({ text: 'two', isGroup: true, mentionsBot: true })
  await expect.poll(() => fake.acknowledged.length).toBe(2)
  expect(texts).toEqual(['one', 'two'])
  fake.system('ping', { opaque: 'x' })
  await expect.poll(() => fake.systemAnswers).toMatchObject([{ code: 200, data: '{"opaque":"x"}' }])
  client.disconnect()
  expect(fake.violations).toEqual([])
})
