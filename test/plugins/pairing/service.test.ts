import { describe, expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import type { Holder, PluginDatabase } from 'svc/sdk'
import { engines, open } from '../../core/storage/engines.ts'
import { Devices } from '../../../plugins/pairing/devices.ts'
import { migrations } from '../../../plugins/pairing/migrations.ts'
import { Pairing } from '../../../plugins/pairing/service.ts'
import { RemovedElsewhere } from '../../../plugins/pairing/removed-elsewhere/store.ts'
import { PairingStore } from '../../../plugins/pairing/store.ts'

const settings = {
  enabled: true,
  max_devices: 10,
  token_expiry_secs: 300,
  max_pending: 5,
  max_attempts: 100,
  last_seen_secs: 60,
  push_provider: 'none',
  ntfy_url: '',
  push_timeout_ms: 1,
} as const
const from = { clientAddress: '192.0.2.1', requestId: 'r' }
const nobody = { principal: { kind: 'operator' }, clientAddress: from.clientAddress } as const

const proofs = { of: async () => 'proven', holds: async (_: unknown, proof: string | null) => proof === 'proven' }
/** What a home knows, without what others tell. */
const alone = (db: PluginDatabase) => {
  const removed = new Map<string, { removed_at: string }>()
  const home = {
    all: async () => removed,
    put: async (id: string, at: { removed_at: string }) => void removed.set(id, at),
    putAll: async (all: readonly (readonly [string, { removed_at: string }])[]) =>
      all.forEach(([id, at]) => removed.set(id, at)),
  }
  return {
    follow: () => () => [],
    failed: () => undefined,
    proofs,
    removed: home,
    elsewhere: new RemovedElsewhere({ db, proofs, removed: home }),
    warn: () => Promise.resolve(),
  }
}
/** The trail has a test of its own; an entry is a statement among others here. */
const trail = (store: PairingStore) => ({
  entry: () => store.removeCode('none'),
  write: () => Promise.resolve(),
  entries: () => Promise.resolve([]),
})

describe.each(engines)('pairing on %s', (engine) => {
  it('no guess is compared before those before it are counted, however many come at the same time', async () => {
    const { database } = await open(engine)
    await database.migrate('pairing', migrations)
    const store = new PairingStore(database.sql)
    const audit = trail(store)
    const secrets = new Map<string, string>()
    const vault = {
      read: (name: string) => Promise.resolve(secrets.get(name)),
      write: (name: string, secret: string) => Promise.resolve(void secrets.set(name, secret)),
      remove: () => Promise.resolve(false),
      names: () => Promise.resolve([]),
    }
    let wrong = 0
    const credentials = {
      accept: () => ({ revoked() {} }),
      holds: () => true,
      checkAttempts() {
        if (wrong >= 10) throw new Refusal('rate_limit', 'too many')
      },
      failed() {
        wrong++
      },
    }
    const pairing = new Pairing({
      store,
      devices: new Devices({ store, audit, now: Date.now, ...alone(database.sql) }),
      audit,
      vault,
      credentials,
      settings,
      now: Date.now,
    })
    const { code } = await pairing.request(nobody)
    const guesses = await Promise.allSettled(
      Array.from({ length: 30 }, (_, n) =>
        pairing.complete({ code: `AAA-${n}`, name: 'thief', platform: 'unknown' }, from),
      ),
    )
    expect(guesses.filter(({ status }) => status === 'fulfilled')).toEqual([])
    expect(wrong).toBe(10)
    await expect(pairing.complete({ code, name: 'owner', platform: 'unknown' }, from)).rejects.toThrow('too many')
    wrong = 0
    expect((await pairing.complete({ code, name: 'owner', platform: 'unknown' }, from)).device).toMatchObject({
      display_name: 'owner',
    })
  })

  /** A daemon's devices, with one that is paired. */
  async function paired() {
    const { database } = await open(engine)
    await database.migrate('pairing', migrations)
    const store = new PairingStore(database.sql)
    const devices = new Devices({ store, audit: trail(store), now: Date.now, ...alone(database.sql) })
    const seen = { revoked: 0, find: (_digest: string): Holder | undefined => undefined }
    await devices.open({
      accept(source) {
        seen.find = (digest) => source.find(digest)
        return {
          revoked() {
            seen.revoked++
          },
        }
      },
      holds: () => true,
      checkAttempts() {},
      failed() {},
    })
    const at = new Date(0).toISOString()
    const row = {
      id: 'phone',
      digest: 'key',
      proof: 'proven',
      display_name: 'Ada',
      platform: 'ios',
      paired_at: at,
      last_seen: at,
    }
    await store.commit(
      store.insertCode({ id: 'code', digest: 'digest', expires_at: new Date(1).toISOString() }, 5),
      store.insertDevice(row, { id: 'code', maxAttempts: 1 }, 5),
    )
    return { db: database.sql, store, devices, seen, row }
  }

  it('a daemon follows what another one on the same database paired and removed', async () => {
    const { store, devices, seen, row } = await paired()
    expect(seen.find('key')).toBeUndefined()
    await devices.read()
    expect([seen.find('key'), seen.revoked]).toEqual([
      { kind: 'device', title: 'A paired device', name: 'Ada', id: 'phone' },
      0,
    ])
    await devices.note()
    expect((await store.devices())[0]?.last_seen).not.toBe(row.last_seen)
    await store.commit(store.removeDevice('phone'))
    await devices.read()
    expect([seen.find('key'), seen.revoked]).toEqual([undefined, 1])
    // Its row is put back.
    await store.commit(
      store.insertCode({ id: 'next', digest: 'next', expires_at: new Date(1).toISOString() }, 5),
      store.insertDevice(row, { id: 'next', maxAttempts: 1 }, 5),
    )
    await devices.read()
    expect([seen.find('key'), devices.size]).toEqual([undefined, 0])
  })

  it('a home that did not run when a device was removed refuses its row from the next start on', async () => {
    const { db, store, devices, row } = await paired()
    await devices.read()
    await devices.remove('phone', nobody)
    await db.run`INSERT INTO pairing_removed (id, removed_at, proof) VALUES ('other', '2026', 'of nobody')`
    for (const [at, id] of ['phone', 'other'].entries())
      await store.commit(
        store.insertCode({ id, digest: id, expires_at: new Date(1).toISOString() }, 5),
        store.insertDevice({ ...row, id, digest: `${at}` }, { id, maxAttempts: 1 }, 5),
      )
    const away = new Devices({ store, audit: trail(store), now: Date.now, ...alone(db) })
    await away.open({ accept: () => ({ revoked() {} }), holds: () => true, checkAttempts() {}, failed() {} })
    expect(away.list().map(({ device_id: id }) => id)).toEqual(['other'])
  })

  it('a device that is removed while the devices are read stays removed', async () => {
    const { devices, seen } = await paired()
    await devices.read()
    await Promise.all([devices.read(), devices.remove('phone', nobody), devices.read()])
    expect([seen.find('key'), seen.revoked, devices.size]).toEqual([undefined, 1, 0])
  })
})
