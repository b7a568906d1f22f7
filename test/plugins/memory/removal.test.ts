import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from '../../../core/schema/parse.ts'
import { Graph } from '../../../plugins/memory/graph/service.ts'
import { GraphStore } from '../../../plugins/memory/graph/store.ts'
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

const open = async (engine: string): Promise<MemoryStage> => {
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

describe.each(['SQLite', 'PostgreSQL'])('the memory of a removed agent on %s', (engine) => {
  /** Sixty memories of Ann, with all that belongs to memories. */
  const filled = async () => {
    const stage = await open(engine)
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

describe.each(['SQLite', 'PostgreSQL'])('many memories that are forgotten together on %s', (engine) => {
  const forAnn = { level: 'user', userId: 'ann' } as const
  /** Thirty memories of the agent `a`, as many of it for Ann, notes, and a relation; with vectors. */
  const filled = async () => {
    const stage = await open(engine)
    const { memories, notes } = stage.opened
    const add = (more: object) =>
      memories.add(
        Array.from({ length: 30 }, (_, at) => memoryOf('a', `aubergine ${at} ${Object.keys(more).length}`, more)),
      )
    const own = await add({})
    const ofAnn = await add(forAnn)
    const [{ id: first = '' } = {}, { id: second = '' } = {}] = own
    await memories.update(first, 'aubergine of now', 'ann', { kind: 'person', labels: [] })
    const [newer] = await memories.add([memoryOf('a', 'aubergine for Ann', { ...forAnn, supersedes: second })])
    await notes.put('a', 'soil', 'aubergines like it sandy', { kind: 'agent', labels: [] })
    const graph = new Graph({
      store: new GraphStore(stage.db, console),
      settings: stage.opened.settings,
      now: Date.now,
    })
    const triple = {
      subject: 'Ann',
      subject_type: 'person',
      relation: 'eats',
      object: 'aubergine',
      object_type: 'thing',
    }
    await graph.addTriples({ agentId: 'a', userId: 'ann', memoryId: ofAnn[3]?.id, labels: [] }, [triple])
    await stage.embed('a')
    const key = new MemoryRequests(stage.opened, { kind: 'operator' })
    const contents = async (): Promise<readonly string[]> => {
      const { memories: found } = await key.exported('a')
      return found.map(({ content }) => content).toSorted()
    }
    const removeRest = async (): Promise<void> => {
      const marks = await stage.db.all<{ agent_id: string }>`SELECT agent_id FROM memory_removal`
      for (const { agent_id: id } of marks) await stage.opened.removal.run(id, AbortSignal.timeout(60_000))
    }
    return { stage, memories, notes, graph, key, contents, removeRest, first, second, newer }
  }

  it('are found by nothing from the answer on, and are deleted in slices; what is written then stays', async () => {
    const { stage, memories, notes, graph, key, contents, removeRest, first, second } = await filled()
    const entries = Array.from({ length: 30 }, (_, at) => ({ content: `aubergine of a file ${at}` }))
    await key.imported('a', entries)
    const before = (await rows(stage))['entry']
    expect(await key.clear('a')).toEqual({ status: 'deleted', agent_id: 'a', deleted: 91 })
    expect(await rows(stage)).toMatchObject({ entry: before, tombstone: before, relation: 0, entity: 0 })

    const text = { text: 'aubergine 3', limit: 100 }
    const inTurn = { kind: 'agent', agentId: 'a', userId: 'ann' } as const
    for (const reader of [operator, ann, inTurn]) expect(await memories.search({ ...text, reader })).toEqual([])
    expect(await memories.similar(memoryOf('a', 'aubergine 3 2', forAnn), 9)).toEqual([])
    expect(await key.list({}, { agentId: 'a' })).toMatchObject({ total: 0 })
    expect(await key.list({}, { user: 'ann' })).toMatchObject({ total: 0 })
    expect(await key.users({})).toMatchObject({ total: 0 })
    expect(await key.stats('a')).toMatchObject({ total: 0, without_vector: 0 })
    expect(await key.duplicates('a')).toMatchObject({ duplicate_groups: 0 })
    expect(await key.exported('a')).toMatchObject({ count: 0, superseded: [] })
    expect(await key.exportedOf('ann')).toMatchObject({ count: 0 })
    expect(await notes.list('a', 9, 0)).toMatchObject({ total: 0 })
    expect(await graph.query({ agentId: 'a', all: true }, {})).toEqual([])
    expect(await key.forgetAll([first])).toEqual({ deleted: 0, failed: 1, total: 1 })
    for (const id of [first, second]) {
      await expect(key.find(id)).rejects.toThrow('no memory')
      await expect(key.update(id, 'x')).rejects.toThrow('no memory')
      expect(await key.history(id)).toMatchObject({ versions: [], deleted_by: expect.any(String) })
    }
    await expect(memories.add([memoryOf('a', 'newer', { supersedes: first })])).rejects.toThrow('no memory')

    // The same note, the same file, and something new.
    await notes.put('a', 'soil', 'aubergines of now', { kind: 'agent', labels: [] })
    await key.imported('a', entries.slice(0, 2))
    await memories.add([memoryOf('a', 'aubergine of now')])
    const now = ['aubergine of a file 0', 'aubergine of a file 1', 'aubergine of now', 'aubergines of now']
    expect(await contents()).toEqual(now)
    await stage.embed('a')
    expect(await memories.search({ ...text, text: 'aubergine', reader: operator })).toHaveLength(4)
    await removeRest()
    expect(await contents()).toEqual(now)
    expect(await rows(stage)).toMatchObject({ entry: 4, text: 4, vector: 4, version: 0, removal: 0 })
    expect(await memories.search({ ...text, text: 'aubergine', reader: operator })).toHaveLength(4)
    expect(await key.history(second)).toMatchObject({ versions: [], deleted_by: expect.any(String) })
  })

  it('go with what they superseded at another level, and leave the other level', async () => {
    const { stage, key, contents, removeRest, second, newer } = await filled()
    expect(await key.clear('a', 'user')).toMatchObject({ deleted: 31 })
    for (const id of [second, newer?.id ?? '']) await expect(key.find(id)).rejects.toThrow('no memory')
    const kept = await contents()
    expect(kept).toHaveLength(30)
    await removeRest()
    expect(await contents()).toEqual(kept)
    expect((await rows(stage))['entry']).toBe(30)
  })

  it('of a person go in all agents, and no one else’s do', async () => {
    const { stage, memories, key, contents, removeRest } = await filled()
    await memories.add([
      memoryOf('b', 'aubergine', forAnn),
      memoryOf('b', 'aubergine', { level: 'user', userId: 'bob' }),
    ])
    expect(await key.forgetUser('ann')).toMatchObject({ deleted: 32 })
    expect(await memories.search({ text: 'aubergine', limit: 100, reader: ann })).toEqual([])
    expect(await key.users({})).toMatchObject({ total: 1, users: [{ user_id: 'bob' }] })
    await removeRest()
    expect(await contents()).toHaveLength(30)
    expect((await rows(stage))['entry']).toBe(31)
  })

  it('are deleted in the commit that forgets them when they are few', async () => {
    const { stage, key, first } = await filled()
    const before = await rows(stage)
    await key.forget(first)
    expect(await rows(stage)).toMatchObject({ entry: (before['entry'] ?? 0) - 1, version: 0, removal: 0 })
  })

  it('a long one too: its words are taken out of the index later, when it is forgotten or changed', async () => {
    const { stage, memories, key, removeRest } = await filled()
    const words = (name: string) => Array.from({ length: 1_400 }, (_, at) => `${name}${at}`).join(' ')
    const [long] = await memories.add([memoryOf('b', words('quince'))])
    const id = long?.id ?? ''
    const before = await rows(stage)
    await key.update(id, words('medlar'))
    expect(await rows(stage)).toMatchObject({ text: (before['text'] ?? 0) + 1, removal: 1 })
    const found = async (text: string) =>
      (await memories.search({ text, limit: 9, reader: operator })).map(({ memory }) => memory.id)
    expect(await found('quince7')).toEqual([])
    expect(await found('medlar7')).toEqual([id])
    await removeRest()
    expect(await rows(stage)).toEqual({ ...before, version: (before['version'] ?? 0) + 1 })
    expect(await found('medlar7')).toEqual([id])
    expect((await key.history(id)).versions).toHaveLength(2)
    const [newer] = await memories.add([memoryOf('b', 'rhubarb', { supersedes: id })])
    expect(await found('medlar7')).toEqual([])
    expect(await rows(stage)).toMatchObject({ text: (before['text'] ?? 0) + 1, removal: 1 })
    await removeRest()
    expect((await rows(stage))['text']).toBe(before['text'])
    await key.forget(newer?.id ?? '')
    await removeRest()
    expect((await rows(stage))['text']).toBe((before['text'] ?? 0) - 1)
    if (engine === 'PostgreSQL') return
    await stage.db.run`INSERT INTO memory_words (memory_words, rank) VALUES ('integrity-check', 1)`
    for (const word of ['quince', 'medlar'])
      expect(
        await stage.db.all`SELECT id FROM memory_words_data
        WHERE instr(block, CAST(${word} AS BLOB)) > 0`,
      ).toEqual([])
  })

  it('are brought back by a backup before they are deleted', async () => {
    const { key, contents, removeRest } = await filled()
    const backup = parse(Import, { ...structuredClone(await key.exported('a')), restore: true })
    const before = await contents()
    await key.clear('a')
    expect(await key.imported('a', backup)).toMatchObject({ imported: 62, conflicts: [] })
    await removeRest()
    expect(await contents()).toEqual(before)
  })

  it('come to an end with one that cannot be read', async () => {
    const { stage, key, first } = await filled()
    await stage.db.run`UPDATE memory_entry SET tags = 'no JSON' WHERE id = ${first}`
    expect(await key.clear('a')).toMatchObject({ deleted: 61 })
    await stage.db
      .run`INSERT INTO memory_entry (id, agent_id, user_id, session_id, level, content, confidence, tags, source,
        metadata, superseded_by, created_at, updated_at, accessed_at, access_count, strength, embedded_with)
      VALUES ('broken', 'b', 'ann', '', 'user', 'x', 1, 'no JSON', '{}', '{}', '', '', '', 1, 0, 1, '')`
    expect(await key.forgetUser('ann')).toMatchObject({ deleted: 1 })
  })
})

it.each([
  ['a removed agent', (agent: string) => `/api/agents/${agent}`],
  ['an agent that stays', (agent: string) => `/api/memory/agents/${agent}`],
  ['a person', () => '/api/memory/user/ann'],
])(
  'all memory of %s is gone at once, deleted by a daemon that is killed meanwhile, and in no copy',
  async (_, path) => {
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
    const LENGTH = 2_000
    {
      await using daemon = await startDaemon({ home })
      const spawn = (name: string) => call(daemon, 'POST', '/api/agents', { manifest_toml: `name = "${name}"` })
      const { agent_id: agent } = (await spawn('old')).body
      const entries = Array.from({ length: LENGTH }, (_, at) => ({ content: `qwxaubergine ${at}`, user_id: 'ann' }))
      const { status } = await call(daemon, 'POST', `/api/memory/agents/${agent}/import`, entries)
      expect(status).toBe(200)
      expect((await call(daemon, 'DELETE', path(agent))).status).toBe(200)
      expect(count('memory_entry')).toBeGreaterThan(LENGTH / 2)
      expect((await call(daemon, 'GET', '/api/memory')).body.total).toBe(0)
      // Where it was removed one of its name is made again.
      await spawn('old')
      expect((await call(daemon, 'POST', '/api/memory', { content: 'rhubarb', agent_id: 'old' })).status).toBe(201)
      expect((await call(daemon, 'GET', '/api/memory/search?q=qwxaubergine')).body.memories).toEqual([])
      const before = count('memory_entry')
      if (before > 1) while (count('memory_entry') === before) await nextTurn()
      await daemon.kill()
    }
    expect(count('memory_entry')).toBeGreaterThan(1)
    expect(await bytes()).toContain('qwxaubergin')
    await using daemon = await startDaemon({ home })
    const { body } = await call(daemon, 'POST', '/api/backup', {}, 120_000)
    expect([count('memory_entry'), count('memory_text'), count('memory_removal')]).toEqual([1, 1, 0])
    expect((await call(daemon, 'GET', '/api/memory')).body.memories).toMatchObject([{ content: 'rhubarb' }])
    const archive = await unpack(join(home, 'backups', body.filename))
    expect(archive.get('data/svc.db')?.toString('latin1')).not.toContain('qwxaubergin')
    await daemon.stop()
    expect(await bytes()).not.toContain('qwxaubergin')
  },
)
