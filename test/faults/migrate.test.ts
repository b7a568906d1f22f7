import { readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import { releasedData, firstReleaseHome, migrate } from './migrate.ts'
import type { Json } from '../support/json.ts'

it('the database of the first version is brought up to date, and everything in it can be read', async () => {
  const home = await firstReleaseHome()
  try {
    await using host = await startHost({ home })
    const get = async (path: string): Promise<Json> => {
      const { status, body } = await host.json('GET', path)
      expect(status, path).toBe(200)
      return body
    }
    expect(host.app.daemon.plugins().filter(({ state }) => state !== 'loaded')).toEqual([])
    const agents = await get('/api/agents')
    expect(agents.map(({ name }: { name: string }) => name)).toEqual(['assistant', 'first', 'second'])
    expect(await get(`/api/agents/${releasedData.first}`)).toMatchObject({
      name: 'first',
      description: 'of the first landing',
    })
    const { sessions } = await get(`/api/agents/${releasedData.first}/sessions`)
    expect(sessions.map(({ label }: { label: string | null }) => label)).toContain('second session')
    const old = sessions.find(({ label }: { label: string | null }) => label === null)
    const { messages } = await get(`/api/sessions/${old.session_id}`)
    expect(
      messages
        .filter(({ role }: { role: string }) => role === 'User')
        .map(({ content }: { content: string }) => content),
    ).toEqual(['hello 1, ü and 👋', 'hello 2, ü and 👋', 'hello 3, ü and 👋'])
    const { kv_pairs: pairs } = await get(`/api/memory/agents/${releasedData.first}/kv`)
    expect(pairs).toEqual(['a', 'b', 'c'].map((k) => expect.objectContaining({ key: k, value: { k, n: [1, 2, 3] } })))
    expect(await get(`/api/approvals/${releasedData.approval}`)).toMatchObject({
      id: releasedData.approval,
      action: 'deploy',
    })
    expect((await get(`/api/agents/${releasedData.first}/turns`)).turns).toHaveLength(3)
    const { body: usage } = await host.json('GET', '/api/usage?period=month')
    expect(JSON.stringify(usage)).toMatch(/\d/)
    const { providers } = await get('/api/providers')
    expect(providers.find(({ name, id }: { name?: string; id?: string }) => (id ?? name) === 'openai')).toMatchObject({
      auth_status: expect.stringMatching(/configured/),
    })
    const verdict = await get('/api/audit/verify')
    expect(verdict).toMatchObject({ status: 'valid', first_entry: 1, anchor: 'known' })
    expect(verdict.chain_length).toBeGreaterThanOrEqual(releasedData.entries)
    expect(
      readdirSync(join(home, 'data', 'snapshots')).filter((name) => /^before-migration-.*\.db$/.test(name)),
    ).toHaveLength(1)
    // It goes on as it was: what is written now stands beside what was written then.
    expect(
      (await host.json('POST', `/api/agents/${releasedData.first}/message`, { message: 'and today?' })).status,
    ).toBe(200)
    expect(JSON.stringify(await get(`/api/agents/${releasedData.first}/session`))).toMatch(/and today\?/)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
})

it('a daemon that is killed while it does so can be started again', async () => {
  expect((await migrate({ rounds: 2, seed: 3 })).problems).toEqual([])
})

it('a database that a newer version changed is refused, and nothing in it is touched', async () => {
  const home = await firstReleaseHome()
  try {
    const db = new Sqlite(join(home, 'data', 'svc.db'))
    db.prepare("INSERT INTO core_migration VALUES ('kv', '999-of-tomorrow', 'x', '2030-01-01T00:00:00.000Z')").run()
    db.close()
    await using host = await startHost({ home, plugins: ['audit', 'agents', 'kv', 'system'] })
    const kv = host.app.daemon.plugins().find(({ name }) => name === 'kv')
    expect(kv).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/newer version of plugin "kv", which applied 999-of-tomorrow.*svc restore/),
    })
    expect((await host.json('GET', `/api/memory/agents/${releasedData.first}/kv`)).status).toBe(404)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
})
