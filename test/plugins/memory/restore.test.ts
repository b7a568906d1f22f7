import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from '../../../core/schema/parse.ts'
import { MemoryRequests } from '../../../plugins/memory/routes/requests.ts'
import { AgentExport, Import } from '../../../plugins/memory/schema.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { memoryOf, openStage } from './open-store.ts'

const operator = { kind: 'operator' } as const
const ownWord = { kind: 'person', person: 'ann', labels: [] } as const

describe.each(['SQLite', 'PostgreSQL'])('a backup on %s', (engine) => {
  const open = async () => {
    if (engine === 'SQLite') return openStage()
    const database = await createTestDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return openStage({}, { url: database.url })
  }
  const requestsOf = async () => {
    const { opened } = await open()
    return { opened, requests: new MemoryRequests(opened, operator) }
  }
  /** An agent with a memory that was changed and superseded one, a note, and one that was used. */
  const filled = async () => {
    const home = await requestsOf()
    const { memories, notes, store } = home.opened
    const [first] = await memories.add([
      memoryOf('a', 'The boat is red', { createdAt: '2026-01-01T00:00:00.000Z', source: ownWord, tags: ['boat'] }),
    ])
    await memories.update(first!.id, 'The boat is blue', 'ann', ownWord)
    const [second] = await memories.add([memoryOf('a', 'The boat is sold', { supersedes: first!.id, source: ownWord })])
    await memories.update(second!.id, 'The boat is sunk', 'bob', {
      kind: 'tool',
      tool: 'web',
      labels: ['ExternalNetwork'],
    })
    await memories.add([memoryOf('a', 'Has a dog', { level: 'user', userId: 'ann', confidence: 0.5 })])
    await notes.put('a', 'empty', '', ownWord)
    await store.commit([
      home.opened.db.sql`UPDATE memory_entry SET access_count = 7, accessed_at = 1700000000000,
      strength = 0.25 WHERE id = ${second!.id}`,
    ])
    return { ...home, first: first!.id, second: second!.id }
  }
  const sent = (exported: object, more: object = {}) =>
    parse(Import, { ...structuredClone(exported), restore: true, ...more })

  it('comes back into a new home as it was, and a second time changes nothing', async () => {
    const { requests, second } = await filled()
    const exported = await requests.exported('a')
    expect(parse(AgentExport, exported)).toMatchObject({ count: 3, superseded: [{ content: 'The boat is blue' }] })
    const other = await requestsOf()
    const dry = await other.requests.imported('b', sent(exported, { dry_run: true }))
    expect(dry).toEqual({ imported: 4, agent_id: 'b', unchanged: 0, conflicts: [], dry_run: true })
    expect(await other.requests.exported('b')).toMatchObject({ count: 0, superseded: [] })
    const done = await other.requests.imported('b', sent(exported))
    expect(done).toEqual({ ...dry, dry_run: false })
    expect({ ...(await other.requests.exported('b')), agent_id: 'a' }).toEqual(exported)
    expect(await other.requests.history(second)).toEqual(await requests.history(second))
    const found = await other.opened.memories.search({ text: 'boat', reader: operator, limit: 5 })
    expect(found.map(({ memory }) => memory.content)).toEqual(['The boat is sunk'])
    expect(await other.requests.imported('b', sent(exported))).toMatchObject({
      imported: 0,
      unchanged: 4,
      conflicts: [],
    })
  })

  it('names what is taken and writes nothing over it', async () => {
    const { requests, opened, first, second } = await filled()
    const exported = await requests.exported('a')
    const note = await opened.store.byKey('a', 'empty')
    expect(await requests.imported('b', sent(exported))).toMatchObject({
      imported: 0,
      conflicts: expect.arrayContaining([{ id: second, reason: 'it is of agent a' }]),
    })
    await opened.memories.forget([second, note!.id], 'ann')
    await opened.notes.put('a', 'empty', 'not any more', ownWord)
    const answer = await requests.imported('a', sent(exported))
    expect(answer).toMatchObject({
      imported: 2,
      unchanged: 1,
      conflicts: [{ id: note!.id, reason: 'the agent has another note "empty"' }],
    })
    // What was deleted since is in the backup, and goes again with what it superseded.
    await requests.forget(second)
    expect(await opened.store.byIds([first, second])).toEqual([])
    const orphan = { ...exported, memories: [] }
    expect(await requests.imported('a', sent(orphan))).toMatchObject({
      imported: 0,
      conflicts: [{ id: first, reason: 'what superseded it is not there' }],
    })
  })

  it('is refused where it is no whole backup', async () => {
    const { requests } = await filled()
    const exported = await requests.exported('a')
    const { id: _id, ...without } = exported.memories[0]!
    for (const [entry, said] of [
      [without, 'memories.0.id'],
      [{ ...without, id: 'x' }, 'Invalid memory ID'],
      [{ ...exported.memories[0], source: undefined }, 'memories.0.source'],
      [{ ...exported.memories[0], updated_at: '2999-01-01T00:00:00Z' }, 'is in the future'],
    ] as const)
      await expect(async () => requests.imported('a', sent({ ...exported, memories: [entry] }))).rejects.toThrow(said)
    // Never an import of the words alone instead.
    expect(() => parse(Import, { ...exported, restore: 'yes' })).toThrow()
    expect(() => parse(Import, { ...exported, dry_run: true })).toThrow()
    const twice = sent({ ...exported, memories: [exported.memories[0], exported.memories[0]] })
    await expect(requests.imported('a', twice)).rejects.toThrow('in the backup twice')
  })
})
