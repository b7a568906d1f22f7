import Sqlite from 'better-sqlite3'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'

const start = (): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/audit/', import.meta.url),
    builtIns: ['agents'],
    database: 'file',
  })
const get = (test: PluginTest, path: string) => test.request<Json>('GET', `/api/audit/${path}`)
const eventTypes = (entries: readonly { event_type: string }[]): readonly string[] =>
  entries.map((entry) => entry.event_type)
/** Changes the file of the database as somebody outside the daemon would. */
function edit({ home }: PluginTest, statement: string, ...values: unknown[]): void {
  const file = new Sqlite(join(home, 'data', 'svc.db'))
  file.prepare(statement).run(...values)
  file.close()
}

describe('what the audit trail lists', () => {
  let test: PluginTest
  beforeAll(async () => {
    test = await start()
    for (const name of ['a', 'b', 'c']) await test.spawn(name)
  })
  afterAll(async () => {
    await test[Symbol.asyncDispose]()
  })

  it('a spawn and a kill leave entries, newest last', async () => {
    const id = await test.spawn('one')
    await test.request('DELETE', `/api/agents/${id}`)
    const { status, body } = await get(test, `recent?agent_id=${id}`)
    expect(status).toBe(200)
    expect(eventTypes(body.entries)).toEqual(['agent_spawned', 'agent_killed'])
    expect(body.total).toBe(2)
    expect(Object.keys(body.entries[0]).toSorted()).toEqual([
      'actor',
      'agent_id',
      'details',
      'event_type',
      'hash',
      'id',
      'prev_hash',
      'timestamp',
    ])
  })

  it('limits, filters and counts the whole chain', async () => {
    const all = await get(test, 'recent')
    const two = await get(test, 'recent?limit=2')
    expect(two.body.entries).toEqual(all.body.entries.slice(-2))
    expect(two.body.total).toBe(all.body.total)
    const spawned = await get(test, 'recent?event_type=agent_spawned&limit=500')
    expect(new Set(eventTypes(spawned.body.entries))).toEqual(new Set(['agent_spawned']))
    expect(spawned.body.total).toBe(spawned.body.entries.length)
  })

  it.each(['501', '0', '-1', 'ten', '1.5', '99999999999999999999'])('a limit of %s is 400', async (limit) => {
    expect((await get(test, `recent?limit=${limit}`)).status).toBe(400)
  })

  it('a period and a place in the chain limit what is listed', async () => {
    await test.spawn('latest')
    const { entries } = (await get(test, 'recent?n=500')).body
    const [first, last] = [entries[0], entries.at(-1)]
    expect((await get(test, `recent?before=${last.id}&limit=1`)).body.entries).toEqual([entries.at(-2)])
    const since = await get(test, `recent?since=${last.timestamp}&event_type=agent_spawned`)
    expect(since.body.entries.at(-1)).toEqual(last)
    const none = await get(test, 'recent?until=2020-01-01')
    expect(none.body).toEqual({ entries: [], total: 0, tip_hash: last.hash })
    const all = await get(test, `recent?since=${encodeURIComponent(first.timestamp)}&until=2999-12-31T23:59:59Z`)
    expect(all.body).toMatchObject({ entries, total: entries.length })
  })

  it.each(['since=yesterday', 'until=2026-13-45T00:00:00Z', 'since=2026-02-31', 'before=0', 'before=x'])(
    '%s is 400 and says what is wrong',
    async (query) => {
      const { status, body } = await get(test, `recent?${query}`)
      expect(status).toBe(400)
      expect(JSON.stringify(body.error)).toMatch(/must be/)
    },
  )

  it('the alternate listings answer the same', async () => {
    const { body } = await get(test, 'recent')
    expect((await get(test, 'logs')).body).toEqual(body)
    expect((await get(test, 'chain')).body).toEqual(body)
  })
})

describe('the chain of the audit trail', () => {
  let test: PluginTest
  beforeEach(async () => {
    test = await start()
    for (const name of ['a', 'b']) await test.spawn(name)
  })
  afterEach(async () => {
    await test[Symbol.asyncDispose]()
  })

  it('proves an entry from the next checkpoint on', async () => {
    const { tip_hash: tip } = (await get(test, 'recent')).body
    await test.restart()
    const { status, body } = await get(test, 'proof/1')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      entry: { id: 1 },
      leaf_index: 0,
      checkpoint: { signature: expect.any(String) },
      public_key: expect.stringMatching(/BEGIN PUBLIC KEY/),
    })
    expect((await get(test, 'verify')).body).toMatchObject({
      valid: true,
      checkpoint: body.checkpoint,
      tip_hash: tip,
    })
    expect((await get(test, 'proof/99999')).status).toBe(404)
    expect((await get(test, 'proof/first')).status).toBe(400)
  })

  it('tells an edit of the database file while the daemon runs', async () => {
    const before = await get(test, 'verify')
    expect(before).toMatchObject({ status: 200, body: { status: 'valid', first_entry: 1 } })
    expect(before.body.last_entry).toBe(before.body.chain_length)
    const target = (await get(test, 'recent')).body.entries.at(-1).id
    edit(test, "UPDATE audit_entry SET details = 'nothing' WHERE id = ?", target)
    expect((await get(test, 'verify')).body).toMatchObject({ status: 'invalid', first_invalid_id: target })
  })

  it('goes on after a restart, and a cut end is found by it', async () => {
    const { body } = await get(test, 'verify')
    await test.restart()
    await test.spawn('c')
    const after = (await get(test, 'verify')).body
    expect(after.status).toBe('valid')
    expect(after.chain_length).toBeGreaterThan(body.chain_length)
    await test.restart(() => edit(test, 'DELETE FROM audit_entry WHERE id >= ?', after.last_entry))
    expect((await get(test, 'verify')).body).toMatchObject({
      status: 'invalid',
      first_invalid_id: after.last_entry,
    })
  })
})

it('a wrong key leaves an entry without the key, and no more of them than are let in', async () => {
  const api_key = 'the-right-key-of-this-test'
  await using host = await startHost({
    plugins: ['audit', 'agents'],
    config: { api_key, rate_limit: { failed_auth_per_minute: 3 } },
  })
  expect((await host.fetch('/api/agents')).status).toBe(401)
  const wrong: number[] = []
  for (let n = 0; n < 5; n++)
    wrong.push(
      (await host.fetch('/api/agents?x=1', { headers: { authorization: `Bearer sk-wrong-key-0000000000${n}` } }))
        .status,
    )
  expect(wrong).toEqual([401, 401, 401, 429, 429])
  await host.stop()
  await using again = await startHost({ plugins: ['audit', 'agents'], home: host.home, config: { api_key } })
  const { body } = await again.json('GET', '/api/audit/recent?event_type=auth_attempt', undefined, {
    authorization: `Bearer ${api_key}`,
  })
  expect(body.total).toBe(3)
  expect(body.entries[0].details).toMatch(/^refused: a wrong key from 127\.0\.0\.1 for GET \/api\/agents$/)
  expect(JSON.stringify(body)).not.toContain('sk-wrong')
})
