import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { Refusal } from 'svc/sdk'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'
import { eventually } from '../../support/eventually.ts'
import { ChatPlatform } from './chat-platform.ts'

// A daemon or a connection that ends in the middle of sending.

let test: PluginTest
let platform: ChatPlatform
let helper: string
beforeAll(async () => {
  platform = new ChatPlatform()
  platform.install({ edit: { minIntervalMs: 1 }, idempotentSend: false })
  test = await startPlugin({
    plugin: new URL('./test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'activity', 'channels'],
    database: 'file',
    config: {
      channels: { test_chat: { agent_name: 'helper', allowed_users: ['ada'], rate_limit_per_user: 0 } },
      plugins: { drain_ms: 20, channels: { close_timeout_ms: 100, send_retry_min_ms: 1 } },
    },
  })
  helper = await test.spawn('helper')
})
afterAll(() => test[Symbol.asyncDispose]())

it('an answer whose receipt was lost is sent again, and its receipt says so', async () => {
  test.model.answer('Hello.')
  const shown = Promise.withResolvers<void>()
  platform.afterSend.push(() => {
    shown.resolve()
    return new Promise(() => undefined)
  })
  await platform.write('hi')
  await shown.promise
  await test.restart()
  expect(await platform.texts(2, 'chat-1')).toEqual(['Hello.', 'Hello.'])
  expect(new Set(platform.attempts.map(({ id }) => id)).size).toBe(1)
  await eventually(async () => {
    const { body } = await test.request<Json>('GET', `/api/agents/${helper}/deliveries`)
    expect(body.receipts).toMatchObject([{ channel: 'test_chat', status: 'best_effort' }])
  })
})

it('an answer that is being shown when the connection ends goes on in the same message', async () => {
  const [beginning, end] = ['This is the beginning of an answer', ' and this is its end.']
  vi.spyOn(test.model, 'complete').mockImplementationOnce(async function* () {
    yield { type: 'text', delta: beginning }
    await platform.texts(1, 'chat-2')
    await test.request('POST', '/api/channels/reload')
    yield { type: 'text', delta: end }
    yield { type: 'end', stop: 'done', usage: { input: 1, output: 1 } }
  })
  await platform.write('tell me', { chat: { id: 'chat-2', kind: 'direct' } })
  const edits = await platform.edits.wait(1)
  const shown = platform.shown.filter(({ chat }) => chat === 'chat-2')
  expect(shown.map(({ text }) => text)).toEqual([beginning])
  expect(edits).toEqual([{ id: shown[0]?.id, text: beginning + end }])
})

it('an answer that was being shown when the daemon stopped is completed in the same message', async () => {
  const chat = { id: 'chat-3', kind: 'direct' as const }
  const beginning = 'This is the beginning of an answer'
  const written = Promise.withResolvers<void>()
  vi.spyOn(test.model, 'complete').mockImplementationOnce(async function* (_request, signal) {
    yield { type: 'text', delta: beginning }
    await platform.texts(1, chat.id)
    written.resolve()
    await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
  await platform.write('tell me', { chat })
  await written.promise
  const before = platform.edits.items.length
  await test.restart()
  const edits = await platform.edits.wait(before + 1)
  const shown = platform.shown.filter((each) => each.chat === chat.id)
  expect(shown.map(({ text }) => text)).toEqual([beginning])
  expect(edits.slice(before)).toEqual([{ id: shown[0]?.id, text: 'tell me' }])
})

it('an answer whose provider is unloaded before the daemon has stopped is given after the start', async () => {
  const chat = { id: 'chat-5', kind: 'direct' as const }
  const asked = Promise.withResolvers<void>()
  const unloaded = Promise.withResolvers<void>()
  vi.spyOn(test.model, 'complete').mockImplementationOnce(async function* () {
    asked.resolve()
    await unloaded.promise
    yield* []
    throw new Refusal('service_unavailable', 'There is no provider "fake".')
  })
  platform.onClose.push(unloaded.resolve)
  await platform.write('are you there', { chat })
  await asked.promise
  test.model.answer('Still here.')
  await test.restart()
  expect(await platform.texts(1, chat.id)).toEqual(['Still here.'])
})
