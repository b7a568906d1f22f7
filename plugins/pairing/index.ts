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
import { DeviceStore } from './paired/store.ts'

export default definePlugin({
  name: 'pairing',
  version: '1.0.0',
  config: v.object({}),
  sections: { pairing: v.optional(Settings, {}) },
  requires: { audit: Audit, feed: AuditFeed, broadcast: Broadcast, snapshots: DatabaseSnapshots },
  hooks: [DeviceWorkListed],
  migrations,
  pages: [
    {
      path: 'devices',
      title: 'Devices',
      group: 'Operations',
      file: 'pages/devices.html',
      assets: ['devices.js', 'devices.css'],
    },
  ],
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
    const store = new DeviceStore(db)
    const { RemovedDevices } = await import('./removed.ts')
    const removed = new RemovedDevices(snapshots.homeDir)
    const proofs = rowProofs({ derive: () => snapshots.deriveKey('paired-devices'), vault })
    const devices = new Devices({
      store,
      removed,
      elsewhere: broadcast.isShared
        ? new (await import('./removed-elsewhere/store.ts')).RemovedElsewhere({ db, proofs, removed })
        : undefined,
      audit,
      now: Date.now,
      proofs,
      warn: async (...device) => log.warn((await import('./refused.ts')).describe(...device)),
      follow: (rows) => followChanges({ broadcast, own }, 'pairing.devices', rows),
      failed: (error) => log.error('the paired devices could not be read', error),
    })
    let made: Promise<Pairing> | undefined
    const pairing = (): Promise<Pairing> =>
      (made ??= Promise.all([import('./service.ts'), import('./store.ts')]).then(
        ([{ Pairing }, { PairingStore }]) =>
          new Pairing({ store: new PairingStore(db), devices, audit, vault, credentials, settings, now: Date.now }),
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
