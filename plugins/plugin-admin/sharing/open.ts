import { hostname } from 'node:os'
import { dirname } from 'node:path'
import type { Broadcast, Configuration, DatabaseSnapshots } from 'svc/internal'
import type { Logger, PluginDatabase } from 'svc/sdk'
import type { Cluster } from '../../cluster/contract.ts'
import type { Installer } from '../install/service.ts'
import type { Settings } from '../settings.ts'
import { AdoptedChanges } from './adopted.ts'
import { PluginSharing } from './sharing.ts'
import { SharedStore } from './store.ts'

export interface OpenSharingDeps {
  readonly db: PluginDatabase
  readonly broadcast: Broadcast
  readonly cluster: Cluster
  readonly configuration: Configuration
  readonly snapshots: DatabaseSnapshots
  readonly settings: Settings
  readonly plugins: string
  readonly home: string
  readonly installer: () => Promise<Installer>
  readonly log: Logger
}

export async function openSharing(deps: OpenSharingDeps): Promise<PluginSharing> {
  const { configuration, db, installer, snapshots } = deps
  const secret = await snapshots.deriveKey('plugin-admin-changes')
  if (secret === undefined) throw new Error('the daemons on a database share a key of the vault')
  return new PluginSharing({
    ...deps,
    secret,
    store: new SharedStore(db, deps.log),
    adopted: new AdoptedChanges(dirname(deps.plugins)),
    daemon: String(configuration.shown('plugins.cluster.name') ?? hostname()),
    adopter: async () => {
      const service = await installer()
      return {
        install: (change, archive, isCurrent) => service.adopt(change, archive, isCurrent),
        remove: (change, isCurrent) => service.adoptRemoval(change, isCurrent),
      }
    },
  })
}
