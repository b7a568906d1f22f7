import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { ChatPlatform } from '../channels/chat-platform.ts'
import { turnPlugins } from '../plugin-test.ts'
import { eventually } from '../../support/eventually.ts'

// `deliver` of POST /api/hooks/agent: the answer also goes to a chat.

const TOKEN = 'a-token-of-more-than-thirty-two-characters'
let test: PluginTest
let platform: ChatPlatform
let helper: string
beforeAll(async () => {
  platform = new ChatPlatform()
  platform.install()
  test = await startPlugin({
    plugin: new URL('../channels/test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'activity', 'channels', 'webhooks'],
    database: 'file',
    config: {
      webhook_triggers: { enabled: true, token: TOKEN, deliver_to: ['*:ops*'] },
      plugins: { drain_ms: 20 },
      channels: { test_chat: { agent_name: 'helper', allowed_users: ['ada'] } },
    },
  })
  helper = await test.spawn('helper')
  await test.spawn('mute', 'channels = ["telegram"]')
})
afterAll(() => test[Symbol.asyncDispose]())

const ask = (body: object, key?: string) =>
  test.request<Json>(
    'POST',
    '/api/hooks/agent',
    { message: 'Report.', agent: 'helper', deliver: true, channel: 'test_chat', recipient: 'ops', ...body },
    { authorization: `Bearer ${TOKEN}`, ...(key !== undefined && { 'idempotency-key': key }) },
  )

describe('deliver', () => {
  it('sends the answer to the chat once, however often the request is repeated, and lists it for the agent', async () => {
    test.model.answer('All is well.')
    const answers = [await ask({ recipient: 'ops-once' }, 'k-1'), await ask({ recipient: 'ops-once' }, 'k-1')]
    for (const { status, body } of answers)
      expect([status, body]).toMatchObject([
        200,
        { response: 'All is well.', delivery: { status: 'queued', channel: 'test_chat', recipient: 'ops-once' } },
      ])
    test.model.answer('Later.')
    await ask({ recipient: 'ops-once' })
    expect(await platform.texts(2, 'ops-once')).toEqual(['All is well.', 'Later.'])
    await eventually(async () =>
      expect((await test.request<Json>('GET', `/api/agents/${helper}/deliveries`)).body.receipts).toContainEqual(
        expect.objectContaining({ channel: 'test_chat', recipient: 'ops-once', status: 'sent' }),
      ),
    )
  })

  it.each([
    [{ channel: 'nowhere' }, 404, 'There is no channel "nowhere"'],
    [{ channel: 'telegram' }, 404, 'channels add telegram'],
    [{ account_id: 'other' }, 404, 'no account "other"'],
    [{ channel: undefined }, 400, 'channel: deliver needs it'],
    [{ recipient: undefined }, 400, 'recipient: deliver needs it'],
    [{ recipient: 'stranger' }, 403, 'deliver_to'],
    [{ agent: 'mute' }, 403, 'manifest'],
  ])('%j is %i before the agent is asked', async (body, status, message) => {
    const before = test.model.requests.length
    const answer = await ask(body)
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringContaining(message)])
    expect(test.model.requests).toHaveLength(before)
  })

  it('is done after a restart for a turn that the end of the daemon cut', async () => {
    const asked = Promise.withResolvers<void>()
    vi.spyOn(test.model, 'complete').mockImplementationOnce(async function* (_request, signal) {
      yield { type: 'text', delta: 'cut' }
      asked.resolve()
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const cut = ask({ recipient: 'ops-cut' }).catch(() => undefined)
    await asked.promise
    test.model.answer('After the restart.')
    await test.restart()
    await cut
    expect(await platform.texts(1, 'ops-cut')).toEqual(['After the restart.'])
  })
})
