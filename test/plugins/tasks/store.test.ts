import { beforeAll, describe, expect, it } from 'vitest'
import { engines, open, pglite } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import { migrations } from '../../../plugins/tasks/migrations.ts'
import { TaskStore } from '../../../plugins/tasks/store.ts'

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
async function start(engine: EngineName): Promise<TaskStore> {
  const { database } = await open(engine)
  await database.migrate('tasks', migrations)
  return new TaskStore(database.sql)
}
const post = (store: TaskStore, id: string, assigned: string | null = null, most = 100) =>
  store.commit(
    store.insert(
      { id, title: id, description: '', assigned_to: assigned, created_by: 'one', created_at: at(Number(id)) },
      most,
    ),
  )

describe.each(engines)('the queue on %s', (engine) => {
  beforeAll(async () => {
    if (engine === 'pglite') await pglite()
  }, 120_000)

  it('gives each task once, the oldest first, and none that waits for another', async () => {
    const store = await start(engine)
    for (const id of ['3', '1', '2']) await post(store, id)
    await post(store, '0', 'two')
    const claimed = await Promise.all(['a', 'b', 'c', 'd'].map((claim) => store.claim('one', claim, at(10), at(20))))
    expect(claimed.map((task) => task?.id ?? 'none').toSorted()).toEqual(['1', '2', '3', 'none'])
    expect(await store.claim('two', 'e', at(10), at(20))).toMatchObject({
      id: '0',
      status: 'in_progress',
      claimed_by: 'two',
      attempts: 1,
    })
    expect(await store.counts()).toEqual(new Map([['in_progress', 4]]))
  })

  it('takes back what nobody finished in time, and fails it at last', async () => {
    const store = await start(engine)
    await post(store, '1')
    await store.claim('one', 'a', at(10), at(20))
    await store.sweep(at(19), 2, undefined)
    expect(await store.find('1')).toMatchObject({ status: 'in_progress' })
    await store.sweep(at(20), 2, undefined)
    expect(await store.find('1')).toMatchObject({ status: 'pending', claimed_by: null })
    await store.claim('two', 'b', at(21), at(22))
    expect(await store.complete('1', 'one', 'late', at(22))).toBe(false)
    await store.sweep(at(30), 2, undefined)
    expect(await store.find('1')).toMatchObject({ status: 'failed', attempts: 2 })
    await store.sweep(at(40), 2, at(31))
    expect(await store.find('1')).toBeUndefined()
  })

  it('is full at its limit, and a refused task leaves nothing', async () => {
    const store = await start(engine)
    await post(store, '1', null, 1)
    await expect(post(store, '2', null, 1)).rejects.toThrow()
    expect(await store.list(undefined, 10, 0)).toHaveLength(1)
  })
})
