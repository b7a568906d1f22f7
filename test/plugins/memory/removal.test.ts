import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from '../../../core/schema/parse.ts'
import { MemoryRequests } from '../../../plugins/memory/routes/requests.ts'
import { Import } from '../../../plugins/memory/schema.ts'
import { call } from '../../faults/home.ts'
import { startDaemon } from '../../support/daemon.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { unpack } from '../backups/archives.ts'
import { memoryOf, openStage } from './open-store.ts'
import type { MemoryStage } from './open-store.ts'

const operator = { kind: 'operator' } as const
const ann = { kind: 'person', userId: 'ann' } as const
const TABLES = [
  'entry',
  'text',
  'vector',
  'sign',
  'version',
  'tombstone',
  'use',
  'entity',
  'relation',
  'removal',
] as const

describe.each(['SQLite', 'PostgreSQL'])('the memory of a removed agent on %s', (engine) => {
  const open = async (): Promise<MemoryStage> => {
    if (engine === 'SQLite') return openStage()
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return openStage({}, { url: database.url })
  }
  const rows = async ({ db }: MemoryStage): Promise<Readonly<Record<string, number>>> => {
    const counts = TABLES.map(async (table) => {
      const [row] = await db.all<{ count: number }>(
        Object.assign([`SELECT COUNT(*) AS count FROM memory_${table}`], { raw: [] }),
      )
      return [table, Number(row?.count)]
    })
    return Object.fromEntries(await Promise.all(counts))
  }
  /** Sixty memories of Ann, with all that belongs to memories. */
  const filled = async () => {
    const stage = await open()
    const { memories, db } = { ...stage.opened, db: stage.db }
    const forAnn = { level: 'user', userId: 'ann' } as const
    const added = await memories.add(Array.from({ length: 60 }, (_, at) => memoryOf('a', `aubergine ${at}`, forAnn)))
    const ids = added.map(({ id }) => id)
    const [id = '', forgotten = ''] = ids
    await memories.update(id, 'aubergine of now', 'ann', { kind: 'person', labels: [] })
    await memories.add([memoryOf('a', 'aubergine anew', { ...forAnn, supersedes: ids[2] })])
    await memories.forget([forgotten], 'ann')
    await stage.embed('a')
    await db.run`INSERT INTO memory_use (turn_id, agent_id, user_id, memory_ids, created_at)
      VALUES ('t', 'a', 'ann', '[]', '2026-01-01')`
    await db.run`INSERT INTO memory_entity (id, agent_id, user_id, name_key, name, entity_type, properties, is_made,
      created_at) VALUES ('e', 'a', 'ann', 'x', 'X', 'thing', '{}', 1, '2026-01-01')`
    await db.run`INSERT INTO memory_relation (id, agent_id, user_id, source_id, relation, target_id, memory_id,
      confidence, properties, labels, created_at) VALUES ('r', 'a', 'ann', 'e', 'is', 'e', '', 1, '{}', '[]', '2026-01-01')`
    return { stage, memories, removal: stage.opened.removal, ids, id, forgotten }
  }

  it('is found by nothing from then on, is deleted in slices, and nothing of others is', async () => {
    const { stage, memories, removal, ids, id, forgotten } = await filled()
    const { upkeep, wordIndex, embedder, store } = stage.opened
    await memories.add([memoryOf('b', 'aubergine of b')])
    await stage.embed('b')
    const exported = await new MemoryRequests(stage.opened, { kind: 'operator' }).exported('a')
    await stage.db.batch(removal.later('a'))
    expect((await rows(stage))['entry']).toBe(61)

    const key = new MemoryRequests(stage.opened, { kind: 'operator' })
    const text = { text: 'aubergine', limit: 100 }
    const found = await memories.search({ ...text, reader: operator })
    expect(found.map(({ memory }) => memory.content)).toEqual(['aubergine of b'])
    expect(await memories.search({ ...text, reader: ann })).toEqual([])
    expect(await memories.similar(memoryOf('a', 'aubergine 3', { level: 'user', userId: 'ann' }), 9)).toEqual([])
    expect(await key.list({})).toMatchObject({ total: 1, memories: [{ content: 'aubergine of b' }] })
    expect(await key.users({})).toMatchObject({ total: 0, users: [] })
    expect(await key.stats()).toMatchObject({ total: 1 })
    expect(await key.exportedOf('ann')).toMatchObject({ count: 0 })
    expect(await key.forgetAll([id])).toEqual({ deleted: 0, failed: 1, total: 1 })
    expect(await store.reported('')).toEqual([])
    for (const gone of [id, forgotten]) {
      await expect(key.history(gone)).rejects.toThrow('no memory')
      await expect(key.find(gone)).rejects.toThrow('no memory')
      await expect(key.update(gone, 'x')).rejects.toThrow('no memory')
    }
    // What runs by itself leaves it alone, and comes to an end.
    await upkeep.cleanup()
    expect(await upkeep.clearUser('ann', 'ann')).toBe(0)
    await wordIndex.fill(AbortSignal.timeout(60_000))
    await embedder.sweep()

    // An end in the middle, as by a reload.
    const ending = new AbortController()
    const running = removal.run('a', ending.signal)
    while (((await rows(stage))['entry'] ?? 0) > 50) await nextTurn()
    ending.abort(new Error('reloaded'))
    await expect(running).rejects.toThrow()
    expect((await rows(stage))['entry']).toBeGreaterThan(10)
    // One of the ids is needed before the rest is deleted.
    const [superseded] = exported.superseded
    const backup = parse(Import, { ...structuredClone(exported), restore: true })
    expect(await key.imported('c', backup)).toMatchObject({ imported: 60, unchanged: 0, conflicts: [] })
    expect(superseded?.id).toBe(ids[2])
    await removal.run('a', AbortSignal.timeout(60_000))
    expect(await stage.db.all`SELECT DISTINCT agent_id FROM memory_entry ORDER BY agent_id`).toEqual([
      { agent_id: 'b' },
      { agent_id: 'c' },
    ])
    expect(await key.exported('c')).toMatchObject({ count: 59 })
    await stage.db.batch([...removal.later('b'), ...removal.later('c')])
    await removal.finish()
    expect(await rows(stage)).toEqual(Object.fromEntries(TABLES.map((table) => [table, 0])))
  })

  it('is not deleted again when an agent of its id has one of its own', async () => {
    const { stage, memories, removal } = await filled()
    await stage.db.batch(removal.later('a'))
    await removal.finish('a')
    await memories.add([memoryOf('a', 'rhubarb')])
    await stage.embed('a')
    const before = await rows(stage)
    // A job that was lost after its work runs once more.
    await removal.run('a', AbortSignal.timeout(60_000))
    expect(await rows(stage)).toEqual(before)
    expect(await memories.search({ text: 'rhubarb', limit: 1, reader: operator })).toHaveLength(1)
  })
})

it('an agent is removed at once, its memory by a daemon that is killed meanwhile, and no copy has it', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-removal-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  await writeFile(join(home, 'config.toml'), '[plugins.memory]\nmax_memories_per_agent = 9000\n')
  const file = join(home, 'data', 'svc.db')
  const count = (table: string): number => {
    const database = new Sqlite(file, { readonly: true })
    try {
      return Number(database.prepare(`SELECT COUNT(*) FROM ${table}`).pluck().get())
    } finally {
      database.close()
    }
  }
  const bytes = async (): Promise<string> => {
    const parts = [file, `${file}-wal`].map((name) => readFile(name, 'latin1').catch(() => ''))
    return (await Promise.all(parts)).join('')
  }
  const LENGTH = 1_000
  {
    await using daemon = await startDaemon({ home })
    const spawn = (name: string) => call(daemon, 'POST', '/api/agents', { manifest_toml: `name = "${name}"` })
    const { agent_id: agent } = (await spawn('old')).body
    const entries = Array.from({ length: LENGTH }, (_, at) => ({ content: `qwxaubergine ${at}` }))
    const { status } = await call(daemon, 'POST', `/api/memory/agents/${agent}/import`, entries)
    expect(status).toBe(200)
    expect((await call(daemon, 'DELETE', `/api/agents/${agent}`)).status).toBe(200)
    expect(count('memory_entry')).toBeGreaterThan(LENGTH / 2)
    const { agent_id: again } = (await spawn('old')).body
    expect((await call(daemon, 'GET', `/api/memory/agents/${again}`)).body.total).toBe(0)
    expect((await call(daemon, 'GET', '/api/memory/search?q=qwxaubergine')).body.memories).toEqual([])
    const before = count('memory_entry')
    while (count('memory_entry') === before) await nextTurn()
    await daemon.kill()
  }
  expect(count('memory_entry')).toBeGreaterThan(0)
  expect(await bytes()).toContain('qwxaubergin')
  await using daemon = await startDaemon({ home })
  const { body } = await call(daemon, 'POST', '/api/backup', {}, 120_000)
  expect([count('memory_entry'), count('memory_text'), count('memory_removal')]).toEqual([0, 0, 0])
  const archive = await unpack(join(home, 'backups', body.filename))
  expect(archive.get('data/svc.db')?.toString('latin1')).not.toContain('qwxaubergin')
  await daemon.stop()
  expect(await bytes()).not.toContain('qwxaubergin')
})
