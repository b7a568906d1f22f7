import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { toConfig } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { SHARED_VAULT_KEY } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { turnPlugins } from '../plugin-test.ts'

let database: TestDatabase
let fake: FakeProvider
let test: PluginTest
let agentId = ''
beforeAll(async () => {
  database = await createTestDatabase()
  fake = await startFakeProvider({ key: 'test-key' })
  test = await startPlugin({
    plugin: new URL('../../../plugins/media/', import.meta.url),
    builtIns: [...turnPlugins, 'files', 'openai-compatible', 'budgets', 'canvas'],
    fetch: 'network',
    config: {
      ...toConfig(fake, {
        providers: { openai: { api_key: 'test-key', base_url: fake.url } },
        plugins: { canvas: { kept_per_session: 2 } },
      }),
      database_url: database.url,
      vault_key: SHARED_VAULT_KEY,
    },
  })
  agentId = await test.spawn('maker')
})
afterAll(async () => {
  await test?.[Symbol.asyncDispose]()
  await fake?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
})

it('a picture is paid for once on PostgreSQL, and what it cost is in the ledger', async () => {
  const same = { agentId, turnId: 't-1', callId: 'c-1' }
  const first = await test.callTool('image_generate', { prompt: 'A dot', quality: 'low' }, same)
  expect(first.failed, first.text).toBe(false)
  expect((await test.callTool('image_generate', { prompt: 'A dot', quality: 'low' }, same)).text).toBe(first.text)
  expect(fake.requests.filter(({ media }) => media)).toHaveLength(1)
  expect(await database.query('SELECT tool, state FROM media_call')).toBe('image_generate|done')
  expect(await database.query("SELECT count(*) FROM usage_record WHERE model = 'gpt-image-2'")).toBe('1')
  // A refused call leaves no row.
  fake.script({ status: 400 })
  const other = await test.callTool('image_generate', { prompt: 'A dot' }, { ...same, callId: 'c-2' })
  expect(other.failed).toBe(true)
  expect(await database.query('SELECT count(*) FROM media_call')).toBe('1')
  // What was paid for and not written is known as paid.
  fake.script({ images: [Buffer.from('<svg/>').toString('base64')] })
  await test.callTool('image_generate', { prompt: 'A dot' }, { ...same, callId: 'c-3' })
  expect(await database.query("SELECT count(*) FROM media_call WHERE state = 'paid'")).toBe('1')
})

it('what is known of calls goes after thirty days', async () => {
  await database.query("UPDATE media_call SET created_at = '2020-01-01T00:00:00.000Z' WHERE state = 'paid'")
  await test.advance(86_400_000)
  expect(await database.query('SELECT state FROM media_call')).toBe('done')
})

it('a canvas is kept once on PostgreSQL, the newest of a session, and all go with the agent', async () => {
  const session = { agentId, sessionId: '00000000-0000-4000-8000-00000000000a', turnId: 't' }
  const present = async (callId: string): Promise<string> => {
    const { text, failed } = await test.callTool('canvas_present', { html: `<p>${callId}</p>` }, { ...session, callId })
    expect(failed, text).toBe(false)
    return /canvas ([0-9a-f-]{36})/.exec(text)?.[1] ?? ''
  }
  const first = await present('a')
  expect(await present('a')).toBe(first)
  expect(await database.query('SELECT count(*) FROM canvas_shown')).toBe('1')
  const second = await present('b')
  const third = await present('c')
  const statuses = [first, second, third].map(async (id) => (await test.request('GET', `/api/canvas/${id}`)).status)
  expect(await Promise.all(statuses)).toEqual([404, 200, 200])
  expect((await test.request('DELETE', `/api/agents/${agentId}`)).status).toBe(200)
  expect(await database.query('SELECT count(*) FROM canvas_shown')).toBe('0')
  expect(await database.query('SELECT count(*) FROM media_call')).toBe('0')
})
