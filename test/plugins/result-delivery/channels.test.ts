import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'

// Results of schedules and of POST /api/hooks/agent in a chat: through the real webhook channel, to a fake receiver.

const TOKEN = 'a-token-of-more-than-thirty-two-characters'
const SECRET = 'the-secret-of-the-webhook-channel'
let test: PluginTest
const posts: { readonly url: string; readonly body: Json }[] = []
beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../adapters/channels/webhook', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'queue', 'channels', 'webhooks', 'result-delivery', 'schedules'],
    database: 'file',
    config: { webhook_triggers: { enabled: true, token: TOKEN, deliver_to: ['*'] } },
    fetch(url, { body }) {
      posts.push({ url: url.href, body: JSON.parse(String(body)) })
      return Promise.resolve(new Response(''))
    },
  })
  await test.spawn('scout')
  const fields = { callback_url: 'https://chat.example.com/in', allowed_users: ['*'] }
  const channel = { token: SECRET, agent_name: 'scout', fields }
  const { status, body } = await call('POST', '/api/channels/webhook/configure', channel)
  expect([status, body.error]).toEqual([200, undefined])
})
afterAll(() => test[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  test.request<Json>(method, path, body, headers)
const schedule = async (delivery: object): Promise<string> => {
  const job = { agent_id: 'scout', cron: '0 9 * * *', prompt: 'Report.', delivery }
  const { status, body } = await call('POST', '/api/schedules', job)
  expect([status, body.error]).toEqual([201, undefined])
  return body.id
}
const run = async (id: string, answer: string): Promise<void> => {
  test.model.answer(answer)
  expect(await call('POST', `/api/schedules/${id}/run`)).toMatchObject({ status: 200, body: { response: answer } })
}
const arrived = (text: string): Promise<Json> =>
  eventually(() => {
    const found = posts.filter(({ body }) => JSON.stringify(body).includes(text))
    expect(found).toHaveLength(1)
    return found[0]
  })

it('the result of a schedule comes to the chat that it names, once', async () => {
  await run(await schedule({ kind: 'channel', channel: 'webhook', to: 'team' }), 'All is well.')
  expect(await arrived('All is well.')).toMatchObject({ url: 'https://chat.example.com/in' })
})

it('… or to the chat in which the agent answered last', async () => {
  const text = JSON.stringify({
    sender_id: 'ada',
    chat_id: 'ada-chat',
    message: 'Hello?',
    metadata: { message_id: '1' },
  })
  test.model.answer('Here I am.')
  const sent = await test.fetch('/api/channels/webhook/webhook', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-webhook-timestamp': String(Date.now()),
      'x-webhook-signature': `sha256=${createHmac('sha256', SECRET).update(text).digest('hex')}`,
    },
    body: text,
  })
  expect(sent.status).toBeLessThan(300)
  await arrived('Here I am.')
  await run(await schedule({ kind: 'last_channel' }), 'The evening report.')
  expect(JSON.stringify(await arrived('The evening report.'))).toContain('ada-chat')
})

it('the answer of POST /api/hooks/agent comes to the chat, and without deliver to nobody but the caller', async () => {
  const ask = (body: object) =>
    call(
      'POST',
      '/api/hooks/agent',
      { agent: 'scout', message: 'Report.', ...body },
      { authorization: `Bearer ${TOKEN}` },
    )
  test.model.answer('For nobody else.')
  expect(await ask({ deliver: false })).toMatchObject({ status: 200, body: { response: 'For nobody else.' } })
  test.model.answer('From a program.')
  const answer = await ask({ deliver: true, channel: 'webhook', recipient: 'ops' })
  expect(answer).toMatchObject({ status: 200, body: { response: 'From a program.', delivery: { channel: 'webhook' } } })
  await arrived('From a program.')
  expect(posts.some(({ body }) => JSON.stringify(body).includes('For nobody else.'))).toBe(false)
})

it('a result for a channel that was removed is recorded as undelivered, and the run is not a failure', async () => {
  const id = await schedule({ kind: 'channel', channel: 'webhook', to: 'team' })
  expect((await call('DELETE', '/api/channels/webhook/configure')).status).toBe(200)
  await run(id, 'Into the void.')
  await eventually(async () =>
    expect(await auditDetails(test, 'result_undelivered')).toEqual([
      expect.stringMatching(/^result .* of schedule\.completed was not delivered by channel: .*webhook/),
    ]),
  )
  expect((await call('GET', `/api/schedules/${id}`)).body).toMatchObject({ last_status: 'ok', consecutive_errors: 0 })
})
