import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { FakeProvider } from '../support/fake-provider.ts'

let home: string
let fake: FakeProvider
beforeAll(async () => {
  ;[home, fake] = await Promise.all([mkdtemp(join(tmpdir(), 'svc-reservation-')), startFakeProvider()])
  await writeFile(
    join(home, 'config.toml'),
    `
default_provider = "openai"
default_model = "fake-1"
[providers.openai]
base_url = "${fake.url}"
api_key = "test-key"
[providers.openai.prices.fake-1]
input = 1000
output = 1000
[budget]
max_daily_usd = 5
[plugins.budgets]
reservation_secs = 3600
`,
  )
})
afterAll(async () => {
  await fake[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

it('what a killed daemon had set aside counts after the restart, and is free again when it expires', async () => {
  const at = (url: string) => async (method: string, path: string, body?: unknown) =>
    (
      await fetch(new URL(path, url), {
        method,
        ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      })
    ).json()
  let id = ''
  {
    await using first = await startDaemon({ home })
    const call = at(first.url)
    id = (await call('POST', '/api/agents', { manifest_toml: 'name = "spender"\n[model]\nmax_tokens = 2000\n' }))
      .agent_id
    const index = fake.requests.length
    fake.script({ text: ['Half'], fault: 'stall' })
    const answer = call('POST', `/api/agents/${id}/message`, { message: 'go' }).catch(() => undefined)
    await fake.request(index)
    const { reserved_usd: reserved } = await call('GET', '/api/budget')
    expect(reserved).toBeGreaterThan(2)
    await first.kill()
    await answer
  }
  await using second = await startDaemon({ home })
  const call = at(second.url)
  expect((await call('GET', '/api/budget')).reserved_usd).toBeGreaterThan(2)
  await call('PUT', '/api/budget', { daily_limit_usd: 3 })
  expect((await call('POST', `/api/agents/${id}/message`, { message: 'again' })).error).toContain('running ones')
  // An hour later.
  const database = new Sqlite(join(home, 'data/svc.db'))
  const [{ expires_at: expiresAt } = { expires_at: '' }] = database
    .prepare<[], { expires_at: string }>('SELECT expires_at FROM usage_claim')
    .all()
  expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(3_000_000)
  database.prepare('UPDATE usage_claim SET expires_at = ?').run(new Date().toISOString())
  database.close()
  expect((await call('GET', '/api/budget')).reserved_usd).toBe(0)
  fake.always({ text: 'fine' })
  expect((await call('POST', `/api/agents/${id}/message`, { message: 'again' })).response).toBe('fine')
})
