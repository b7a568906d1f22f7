import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { HostOptions, TestHost } from '../../support/host.ts'

const plugins = ['audit', 'agents', 'memory', fileURLToPath(new URL('../../fixtures/tool-door', import.meta.url))]
let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-memory-'))
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

const start = (config: NonNullable<HostOptions['config']> = {}): Promise<TestHost> =>
  startHost({ plugins, home, config })
const spawn = async (host: TestHost, name: string, rest = ''): Promise<string> =>
  (await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n${rest}` })).body.agent_id
const call = async (
  host: TestHost,
  agent: string,
  tool: string,
  args: unknown,
): Promise<{ text: string; failed: boolean }> =>
  (await host.json('POST', `/test/tools/${tool}`, { agent_id: agent, args })).body
const store = (host: TestHost, agent: string, key: string, value: string) =>
  call(host, agent, 'memory_store', { key, value })
const recall = async (
  host: TestHost,
  agent: string,
  key: string,
): Promise<{ key: string; value: string; created_at: string }[]> =>
  JSON.parse((await call(host, agent, 'memory_recall', { key })).text)

describe('a note', () => {
  it('is recalled by its key', async () => {
    await using host = await start()
    const agent = await spawn(host, 'a')
    expect(await store(host, agent, 'birthday', 'the third of May')).toEqual({
      text: 'Remembered under "birthday".',
      failed: false,
    })
    expect(await recall(host, agent, 'birthday')).toEqual([
      { key: 'birthday', value: 'the third of May', created_at: expect.stringMatching(/Z$/) },
    ])
  })

  it('is found by a part of its key or value, whatever the case, in any script', async () => {
    await using host = await start()
    const agent = await spawn(host, 'a')
    await store(host, agent, 'favourite colour', 'GRÜN')
    await store(host, agent, 'favourite food', 'Käse_50%')
    expect((await recall(host, agent, 'FAVOURITE')).map((note) => note.key).sort()).toEqual([
      'favourite colour',
      'favourite food',
    ])
    expect((await recall(host, agent, 'grün')).map((note) => note.key)).toEqual(['favourite colour'])
    expect((await recall(host, agent, '_50%')).map((note) => note.key)).toEqual(['favourite food'])
    expect(await call(host, agent, 'memory_recall', { key: 'nothing' })).toEqual({
      text: 'No note found for "nothing".',
      failed: false,
    })
  })

  it('of the exact key comes alone', async () => {
    await using host = await start()
    const agent = await spawn(host, 'a')
    await store(host, agent, 'cat', 'Tom')
    await store(host, agent, 'cats', 'Tom and Kit')
    expect(await recall(host, agent, 'cat')).toHaveLength(1)
  })

  it('is replaced under its key and keeps the time it was made', async () => {
    await using host = await start()
    const agent = await spawn(host, 'a')
    await store(host, agent, 'k', 'old')
    const [before] = await recall(host, agent, 'k')
    await store(host, agent, 'k', 'new')
    expect(await recall(host, agent, 'k')).toEqual([{ ...before, value: 'new' }])
  })

  it('survives a restart, and goes with its agent', async () => {
    let agent: string
    {
      await using host = await start()
      agent = await spawn(host, 'a')
      await store(host, agent, 'k', 'v')
    }
    await using host = await start()
    expect(await recall(host, agent, 'k')).toHaveLength(1)
    await host.json('DELETE', `/api/agents/${agent}`)
    await host.stop()
    const { globSync } = await import('node:fs')
    const { default: Database } = await import('better-sqlite3')
    const database = new Database(globSync(join(home, 'data', '*.db'))[0] ?? '')
    expect(database.prepare('SELECT COUNT(*) FROM memory_note').pluck().get()).toBe(0)
    database.close()
  })

  it('belongs to one agent', async () => {
    await using host = await start()
    const [one, two] = [await spawn(host, 'one', '[capabilities]\nmemory_read = ["*"]'), await spawn(host, 'two')]
    await store(host, two, 'secret', 'x')
    expect((await call(host, one, 'memory_recall', { key: 'secret' })).text).toContain('No note found')
    expect(JSON.parse((await call(host, one, 'memory_list', {})).text)).toEqual({ notes: [], total: 0 })
  })

  it('is in the audit log without its text', async () => {
    await using host = await start()
    const agent = await spawn(host, 'a')
    await store(host, agent, 'diary', 'very private')
    const { entries } = (await host.json('GET', '/api/audit/recent')).body
    expect(entries).toContainEqual(
      expect.objectContaining({
        event_type: 'memory_access',
        agent_id: agent,
        details: expect.stringContaining('"diary"'),
      }),
    )
    expect(JSON.stringify(entries)).not.toContain('very private')
  })
})

describe('the list', () => {
  it('is paged, with the total', async () => {
    await using host = await start()
    const agent = await spawn(host, 'a')
    for (const key of ['a', 'b', 'c']) await store(host, agent, key, key)
    const list = async (args: unknown) => JSON.parse((await call(host, agent, 'memory_list', args)).text)
    const all = await list({})
    expect(all.total).toBe(3)
    expect(all.notes.map((note: { key: string }) => note.key).sort()).toEqual(['a', 'b', 'c'])
    expect(all.notes[0]).toEqual({ key: expect.any(String), value: expect.any(String), created_at: expect.any(String) })
    expect((await list({ limit: 2 })).notes).toEqual(all.notes.slice(0, 2))
    expect((await list({ limit: 2, offset: 2 })).notes).toEqual(all.notes.slice(2))
    expect((await call(host, agent, 'memory_list', { limit: 0 })).failed).toBe(true)
  })
})

describe('limits and rights', () => {
  it('memory_read and memory_write of the manifest are respected', async () => {
    await using host = await start()
    const agent = await spawn(host, 'a', '[capabilities]\nmemory_read = ["self.a*"]\nmemory_write = ["self.*"]')
    await store(host, agent, 'apple', 'one')
    await store(host, agent, 'banana', 'an apple is not')
    expect((await recall(host, agent, 'apple')).map((note) => note.key)).toEqual(['apple'])
    expect((await call(host, agent, 'memory_recall', { key: 'is not' })).text).toContain('No note found')
    expect(await call(host, agent, 'memory_recall', { key: 'banana' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('memory_read'),
    })
    expect(
      JSON.parse((await call(host, agent, 'memory_list', {})).text).notes.map((note: { key: string }) => note.key),
    ).toEqual(['apple'])
    const mute = await spawn(host, 'mute', '[capabilities]\nmemory_write = []')
    expect(await store(host, mute, 'x', 'y')).toMatchObject({
      failed: true,
      text: expect.stringContaining('memory_write'),
    })
  })

  it('the number of notes is limited, and replacing goes on', async () => {
    await using host = await start({
      plugins: { memory: { max_notes_per_agent: 3, max_value_chars: 10, max_key_chars: 5 } },
    })
    const agent = await spawn(host, 'a')
    const outcomes = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => store(host, agent, key, '1')))
    expect(outcomes.filter((outcome) => !outcome.failed)).toHaveLength(3)
    const [kept] = JSON.parse((await call(host, agent, 'memory_list', {})).text).notes
    expect((await store(host, agent, kept.key, '2')).failed).toBe(false)
    expect((await store(host, agent, kept.key, 'x'.repeat(11))).failed).toBe(true)
    expect((await store(host, agent, 'k'.repeat(6), 'x')).failed).toBe(true)
    expect((await store(host, agent, kept.key, 'a\0b')).failed).toBe(true)
  })
})
