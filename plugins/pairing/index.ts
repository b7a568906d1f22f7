import * as v from 'valibot'
import { Broadcast, DatabaseSnapshots, followChanges, rowProofs } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit, AuditFeed } from '../audit/contract.ts'
import { Settings } from './config.ts'
import { DeviceWorkListed } from './contract.ts'
import { Devices } from './devices.ts'
import { migrations } from './migrations.ts'
import { pairingRoutes } from './routes.ts'
import type { Pairing } from './service.ts'
import { PairingStore } from './store.ts'

export default definePlugin({
  name: 'pairing',
  version: '1.0.0',
  config: v.object({}),
  sections: { pairing: v.optional(Settings, {}) },
  requires: { audit: Audit, feed: AuditFeed, broadcast: Broadcast, snapshots: DatabaseSnapshots },
  hooks: [DeviceWorkListed],
  migrations,
  async setup({
    config: { pairing: settings },
    credentials,
    db,
    fetch,
    hooks,
    jobs,
    log,
    own,
    routes,
    services: { audit, broadcast, feed, snapshots },
    vault,
  }) {
    const store = new PairingStore(db)
    const { RemovedDevices } = await import('./removed.ts')
    const devices = new Devices({
      store,
      removed: new RemovedDevices(snapshots.homeDir),
      audit,
      now: Date.now,
      proofs: rowProofs({ derive: () => snapshots.deriveKey('paired-devices'), vault }),
      warn: async (...device) => log.warn((await import('./refused.ts')).describe(...device)),
      follow: (rows) => followChanges({ broadcast, own }, 'pairing.devices', rows),
      failed: (error) => log.error('the paired devices could not be read', error),
    })
    let made: Promise<Pairing> | undefined
    const pairing = (): Promise<Pairing> =>
      (made ??= import('./service.ts').then(
        ({ Pairing }) => new Pairing({ store, devices, audit, vault, credentials, settings, now: Date.now }),
      ))
    routes.add(...pairingRoutes({ settings, devices, pairing, audit, feed, fetch, hooks, log }))
    if (!settings.enabled) return {}
    const { takeOverOlder } = await import('./older-devices.ts')
    await takeOverOlder({ home: snapshots.homeDir, vault, store, devices })
    await devices.open(credentials)
    jobs.every('last seen', settings.last_seen_secs * 1000, async () => {
      await devices.note()
      // What another daemon changed is told; this is for when it could not be read then.
      if (db.dialect === 'postgresql') await devices.read()
    })
    own('when devices were last seen', () => devices.note())
    return {}
  },
})
