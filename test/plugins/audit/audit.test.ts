import Sqlite from 'better-sqlite3'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

let host: TestHost
let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-audit-'))
  host = await startHost({ plugins: ['audit', 'agents'], listen: false, home })
})
afterEach(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

const manifest = (name: string): object => ({
  manifest_toml: `name = "${name}"\nversion = "0.1.0"\ndescription = "x"\nmodule = "builtin:chat"\n`,
})
async function spawn(...names: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const name of names) {
    const answer = await host.json('POST', '/api/agents', manifest(name))
    expect(answer.status).toBe(201)
    ids.push(answer.body.agent_id)
  }
  return ids
}

describe('the routes of the audit trail', () => {
  it('a spawn and a kill leave entries, newest last', async () => {
    const [id] = await spawn('one')
    await host.json('DELETE', `/api/agents/${id}`)
    const { status, body } = await host.json('GET', `/api/audit/recent?agent_id=${id}`)
    expect(status).toBe(200)
    expect(body.entries.map((entry: { event_type: string }) => entry.event_type)).toEqual([
      'agent_spawned',
      'agent_killed',
    ])
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
    await spawn('a', 'b', 'c')
    const all = await host.json('GET', '/api/audit/recent')
    const two = await host.json('GET', '/api/audit/recent?limit=2')
    expect(two.body.entries).toEqual(all.body.entries.slice(-2))
    expect(two.body.total).toBe(all.body.total)
    const spawned = await host.json('GET', '/api/audit/recent?event_type=agent_spawned&limit=500')
    expect(new Set(spawned.body.entries.map((entry: { event_type: string }) => entry.event_type))).toEqual(
      new Set(['agent_spawned']),
    )
    expect(spawned.body.total).toBe(spawned.body.entries.length)
  })

  it.each(['501', '0', '-1', 'ten', '1.5', '99999999999999999999'])('a limit of %s is 400', async (limit) => {
    expect((await host.json('GET', `/api/audit/recent?limit=${limit}`)).status).toBe(400)
  })

  it('a period and a place in the chain limit what is listed', async () => {
    await spawn('a', 'b', 'c')
    const { entries } = (await host.json('GET', '/api/audit/recent?n=500')).body
    const [first, last] = [entries[0], entries.at(-1)]
    expect((await host.json('GET', `/api/audit/recent?before=${last.id}&limit=1`)).body.entries).toEqual([
      entries.at(-2),
    ])
    expect(
      (await host.json('GET', `/api/audit/recent?since=${last.timestamp}&event_type=agent_spawned`)).body.entries.at(
        -1,
      ),
    ).toEqual(last)
    const none = await host.json('GET', '/api/audit/recent?until=2020-01-01')
    expect(none.body).toEqual({ entries: [], total: 0, tip_hash: last.hash })
    const all = await host.json(
      'GET',
      `/api/audit/recent?since=${encodeURIComponent(first.timestamp)}&until=2999-12-31T23:59:59Z`,
    )
    expect(all.body).toMatchObject({ entries, total: entries.length })
  })

  it.each(['since=yesterday', 'until=2026-13-45T00:00:00Z', 'since=2026-02-31', 'before=0', 'before=x'])(
    '%s is 400 and says what is wrong',
    async (query) => {
      const { status, body } = await host.json('GET', `/api/audit/recent?${query}`)
      expect(status).toBe(400)
      expect(JSON.stringify(body.error)).toMatch(/must be/)
    },
  )

  it('an entry is proven from the next checkpoint on', async () => {
    await spawn('a')
    const { tip_hash: tip } = (await host.json('GET', '/api/audit/recent')).body
    await host.stop()
    host = await startHost({ plugins: ['audit', 'agents'], listen: false, home })
    const { status, body } = await host.json('GET', '/api/audit/proof/1')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      entry: { id: 1 },
      leaf_index: 0,
      checkpoint: { signature: expect.any(String) },
      public_key: expect.stringMatching(/BEGIN PUBLIC KEY/),
    })
    expect((await host.json('GET', '/api/audit/verify')).body).toMatchObject({
      valid: true,
      checkpoint: body.checkpoint,
      tip_hash: tip,
    })
    expect((await host.json('GET', '/api/audit/proof/99999')).status).toBe(404)
    expect((await host.json('GET', '/api/audit/proof/first')).status).toBe(400)
  })

  it('a wrong key leaves an entry without the key, and no more of them than are let in', async () => {
    await host.stop()
    host = await startHost({
      plugins: ['audit', 'agents'],
      home,
      config: { api_key: 'the-right-key-of-this-test', rate_limit: { failed_auth_per_minute: 3 } },
    })
    const right = { authorization: 'Bearer the-right-key-of-this-test' }
    expect((await host.fetch('/api/agents')).status).toBe(401)
    const wrong: number[] = []
    for (let n = 0; n < 5; n++)
      wrong.push(
        (await host.fetch('/api/agents?x=1', { headers: { authorization: `Bearer sk-wrong-key-0000000000${n}` } }))
          .status,
      )
    expect(wrong).toEqual([401, 401, 401, 429, 429])
    await host.stop()
    host = await startHost({ plugins: ['audit', 'agents'], home, config: { api_key: 'the-right-key-of-this-test' } })
    const { body } = await host.json('GET', '/api/audit/recent?event_type=auth_attempt', undefined, right)
    expect(body.total).toBe(3)
    expect(body.entries[0].details).toMatch(/^refused: a wrong key from 127\.0\.0\.1 for GET \/api\/agents$/)
    expect(JSON.stringify(body)).not.toContain('sk-wrong')
  })

  it('the alternate listings answer the same', async () => {
    await spawn('a')
    const { body } = await host.json('GET', '/api/audit/recent')
    expect((await host.json('GET', '/api/audit/logs')).body).toEqual(body)
    expect((await host.json('GET', '/api/audit/chain')).body).toEqual(body)
  })

  it('verify tells an edit of the database file while the daemon runs', async () => {
    await spawn('a', 'b')
    const before = await host.json('GET', '/api/audit/verify')
    expect(before).toMatchObject({ status: 200, body: { status: 'valid', first_entry: 1 } })
    expect(before.body.last_entry).toBe(before.body.chain_length)
    const { body } = await host.json('GET', '/api/audit/recent')
    const target = body.entries.at(-1).id
    const file = new Sqlite(databaseFile())
    file.prepare("UPDATE audit_entry SET details = 'nothing' WHERE id = ?").run(target)
    file.close()
    expect((await host.json('GET', '/api/audit/verify')).body).toMatchObject({
      status: 'invalid',
      first_invalid_id: target,
    })
  })

  it('the chain goes on after a restart, and a cut end is found by it', async () => {
    await spawn('a', 'b')
    const { body } = await host.json('GET', '/api/audit/verify')
    await host.stop()
    host = await startHost({ plugins: ['audit', 'agents'], listen: false, home })
    await spawn('c')
    const after = await host.json('GET', '/api/audit/verify')
    expect(after.body.status).toBe('valid')
    expect(after.body.chain_length).toBeGreaterThan(body.chain_length)
    await host.stop()
    const file = new Sqlite(databaseFile())
    file.prepare('DELETE FROM audit_entry WHERE id >= ?').run(after.body.last_entry)
    file.close()
    host = await startHost({ plugins: ['audit', 'agents'], listen: false, home })
    expect((await host.json('GET', '/api/audit/verify')).body).toMatchObject({
      status: 'invalid',
      first_invalid_id: after.body.last_entry,
    })
  })
})

const databaseFile = (): string => join(home, 'data', 'svc.db')
