import { describe, expect, it } from 'vitest'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import { clientMigrations } from '../../../plugins/a2a/client/migrations.ts'
import { AgentStore } from '../../../plugins/a2a/client/store.ts'
import { migrations as commsMigrations } from '../../../plugins/comms/migrations.ts'
import type { CommsEvent } from '../../../plugins/comms/schema.ts'
import { CommsStore, forgetTexts } from '../../../plugins/comms/store.ts'
import { migrations as goalMigrations } from '../../../plugins/goals/migrations.ts'
import { GoalStore, withoutAgent } from '../../../plugins/goals/store.ts'
import { migrations as peerMigrations } from '../../../plugins/peers/migrations.ts'
import { PinStore } from '../../../plugins/peers/store.ts'
import { DefinitionStore } from '../../../plugins/workflows/definitions/store.ts'
import { migrations as workflowMigrations } from '../../../plugins/workflows/migrations.ts'

const emptyWorkflow = { revision: 1, description: '', steps: [], totalTimeoutSecs: 1, runBy: [], file: undefined }
const emptyAgent = {
  source: 'api' as const,
  card: null,
  view: null,
  trusted_view: null,
  fingerprint: '',
  discovered_by: null,
  discovered_at: 1,
  checked_at: null,
  trusted_at: null,
}

/** What several daemons on one database do at once, on each engine. */
describe.each(engines)('on %s', (engine) => {
  it('goals keep their tree whatever another daemon does meanwhile', async () => {
    const { database } = await open(engine)
    await database.migrate('goals', goalMigrations)
    const store = new GoalStore(database.sql, recorder().log)
    const at = '2026-01-01T00:00:00.000Z'
    const goal = (id: string, parentId?: string) => ({
      id,
      title: id,
      description: '',
      status: 'pending' as const,
      progress: 0,
      agentId: 'a',
      parentId,
      dueAt: undefined,
      createdBy: undefined,
      createdAt: at,
      updatedAt: at,
    })
    for (const one of [goal('a'), goal('b', 'a'), goal('c', 'b'), goal('d')])
      await store.commit([store.insert(one, 9, 3)])
    const [a, d] = [await store.find('a'), await store.find('d')]
    if (!a || !d) throw new Error('the goals are not there')
    await expect(store.commit([store.update({ ...a, parentId: 'c' }, 9)])).rejects.toThrow()
    await expect(store.commit([store.update({ ...d, parentId: 'gone' }, 9)])).rejects.toThrow()
    await expect(store.commit([store.insert(goal('e', 'gone'), 9, 9)])).rejects.toThrow()
    await expect(store.commit([store.insert(goal('e'), 4, 9)])).rejects.toThrow()
    await expect(store.commit([store.insert(goal('e', 'c'), 9, 3)])).rejects.toThrow()
    await expect(store.commit([store.update({ ...a, parentId: 'd' }, 3)])).rejects.toThrow()
    await store.commit([store.update({ ...a, parentId: 'd' }, 4)])
    await store.commit([store.update({ ...a, version: 2 }, undefined)])
    await store.commit([store.update({ ...d, progress: 5 }, undefined)])
    await expect(store.commit([store.update({ ...d, progress: 6 }, undefined)])).rejects.toThrow()
    expect(await store.find('d')).toMatchObject({ progress: 5, version: 2 })
    expect(await store.count({ status: 'pending', agentId: 'a', roots: true })).toBe(2)
    expect((await store.ofAgent('b', undefined, 9)).length).toBe(0)
    await store.commit([withoutAgent(database.sql, 'a', at)])
    expect((await store.ofAgent('b', 'pending', 9)).length).toBe(4)
    expect(await store.above('c')).toEqual(expect.arrayContaining(['a', 'b', 'c']))
    expect((await store.subtree('b')).map(({ id }) => id)).toEqual(['b', 'c'])
    await store.commit([store.remove('a')])
    expect((await store.list({}, 9, 0)).map(({ id }) => id)).toEqual(['d'])
  })

  it('events are there once, however often the trail is read', async () => {
    const { database } = await open(engine)
    await database.migrate('comms', commsMigrations)
    const store = new CommsStore(database.sql, recorder().log)
    let added = 0
    const event = (id: string, kind: CommsEvent['kind'], timestamp: string) =>
      store.insert(
        {
          id,
          timestamp,
          kind,
          source_id: 'a',
          source_name: 'a',
          target_id: 'b',
          target_name: 'b',
          detail: 'secret',
        },
        () => added++,
      )
    expect(await store.position()).toBeUndefined()
    for (const position of [7, 5]) await store.commit([event('audit-7', 'task_posted', '2'), store.advance(position)])
    expect([await store.position(), added, await store.newest()]).toEqual([7, 1, 1])
    await store.commit([event('m', 'agent_message', '1'), forgetTexts(database.sql, 'b')])
    expect((await store.recent(9)).map(({ id, detail }) => [id, detail])).toEqual([
      ['audit-7', 'secret'],
      ['m', ''],
    ])
    expect(await store.pairs(9)).toEqual([{ source_id: 'a', target_id: 'b' }])
    expect((await store.after(1, 9)).map(({ sequence }) => sequence)).toEqual([2])
    await store.commit([store.deleteOld(1)])
    expect((await store.recent(9)).map(({ id }) => id)).toEqual(['m'])
  })

  it('no row is one too many, whatever another daemon has written since they were counted', async () => {
    const { database } = await open(engine)
    const at = '2026-01-01T00:00:00.000Z'
    await database.migrate('workflows', workflowMigrations)
    const workflows = new DefinitionStore(database.sql, recorder().log)
    const addWorkflow = (id: string) =>
      workflows.commit([
        ...workflows.write({ ...emptyWorkflow, id, name: id, createdAt: at, updatedAt: at }, 1),
        workflows.requireRoom(id, 2),
      ])
    await database.migrate('peers', peerMigrations)
    const pins = new PinStore(database.sql, recorder().log)
    const pin = { public_key: 'ab', node_name: '', address: '', pinned_at: 1, last_seen: 1 }
    const addPin = (id: string) => pins.commit([pins.insert({ ...pin, node_id: id }), pins.requireRoom(id, 2)])
    await database.migrate('a2a', clientMigrations)
    const agents = new AgentStore(database.sql, recorder().log)
    const addAgent = (id: string) =>
      agents.commit([
        agents.put({ ...emptyAgent, id, name: id, url: id, state: id === '1' ? 'trusted' : 'pending' }),
        agents.requireRoom(id, 9, 1),
      ])
    for (const add of [addWorkflow, addPin, addAgent]) {
      for (const id of ['1', '2']) await add(id)
      await expect(add('3')).rejects.toThrow()
    }
    expect([await workflows.count(), await pins.count(), await agents.count()]).toEqual([2, 2, 2])
    await expect(agents.commit([agents.requireRoom('1', 1, 9)])).rejects.toThrow()
  })
})
