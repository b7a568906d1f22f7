import { describe, expect, it } from 'vitest'
import { engines, open } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import { migrations } from '../../../plugins/pairing/migrations.ts'
import { PairingStore } from '../../../plugins/pairing/store.ts'

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
async function start(engine: EngineName): Promise<PairingStore> {
  const { database } = await open(engine)
  await database.migrate('pairing', migrations)
  return new PairingStore(database.sql)
}
const code = (id: string, expires = 60) => ({ id, digest: `digest of ${id}`, expires_at: at(expires) })
const device = (id: string) => ({
  id,
  digest: `key of ${id}`,
  proof: null,
  display_name: id,
  platform: 'android',
  paired_at: at(1),
  last_seen: at(1),
})

describe.each(engines)('codes and devices on %s', (engine) => {
  it('a code makes one device, and a second one not even while the code is still there', async () => {
    const store = await start(engine)
    await store.commit(store.insertCode(code('a'), 5))
    const make = (id: string) => store.commit(store.insertDevice(device(id), { id: 'a', maxAttempts: 3 }, 10))
    const made = await Promise.allSettled([make('one'), make('two')])
    expect(made.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(await store.devices()).toHaveLength(1)
  })

  it('a code that expired, was tried too often or is not there makes none', async () => {
    const store = await start(engine)
    await store.commit(store.insertCode(code('old', 1), 5), store.insertCode(code('tried'), 5))
    for (let attempt = 0; attempt < 3; attempt++) await store.commit(store.countAttempt(at(1)))
    for (const id of ['old', 'tried', 'none']) {
      expect(await store.findCode(`digest of ${id}`, at(1), 3)).toBeUndefined()
      await expect(store.commit(store.insertDevice(device(id), { id, maxAttempts: 3 }, 10))).rejects.toThrow()
    }
    expect(await store.pending(at(1), 3)).toBe(0)
    expect(await store.pending(at(1), 4)).toBe(1)
    await store.commit(store.sweep(at(1), 3), store.insertCode(code('new'), 1))
    expect(await store.findCode('digest of new', at(1), 3)).toMatchObject({ id: 'new' })
  })

  it('has room for so many codes and devices, and what is refused leaves nothing', async () => {
    const store = await start(engine)
    await store.commit(store.insertCode(code('a'), 2), store.insertCode(code('b'), 2))
    await expect(store.commit(store.insertCode(code('c'), 2))).rejects.toThrow()
    await store.commit(store.insertDevice(device('one'), { id: 'a', maxAttempts: 3 }, 1), store.removeCode('a'))
    await expect(
      store.commit(store.insertDevice(device('two'), { id: 'b', maxAttempts: 3 }, 1), store.removeCode('b')),
    ).rejects.toThrow()
    expect(await store.pending(at(1), 3)).toBe(1)
    await store.commit(store.removeDevice('one'))
    expect(await store.devices()).toEqual([])
  })

  it('the time a device was seen goes forward only', async () => {
    const store = await start(engine)
    await store.commit(
      store.insertCode(code('a'), 2),
      store.insertDevice(device('one'), { id: 'a', maxAttempts: 3 }, 1),
    )
    await store.commit(store.seen('one', at(9)), store.seen('one', at(5)))
    expect(await store.devices()).toMatchObject([{ last_seen: at(9) }])
  })
})
