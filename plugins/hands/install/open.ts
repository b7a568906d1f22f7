import { join } from 'node:path'
import { openSharedFolders } from 'svc/internal'
import type { Daemon, DatabaseSnapshots, TellChange } from 'svc/internal'
import type { PluginContext } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Wakeups } from '../../schedules/contract.ts'
import type { Skills } from '../../skills/contract.ts'
import type { HandCatalog } from '../catalog.ts'
import type { Settings } from '../config.ts'
import { HandInstaller } from './service.ts'
import { InstalledStore } from './store.ts'
import type { HandColumns } from './store.ts'

export type OpenInstallerDeps = Pick<PluginContext<Settings, {}, {}>, 'config' | 'db' | 'log' | 'own' | 'tools'> & {
  readonly services: {
    readonly audit: Audit
    readonly daemon: Daemon
    readonly snapshots: DatabaseSnapshots
    readonly wakeups: Wakeups
  }
  optional(name: 'skills'): Skills | undefined
}
export interface OpenedInstaller {
  readonly installer: HandInstaller
  /** Makes `<home>/hands` what the database says. */
  follow(): Promise<void>
}

/** What installs hands and follows what other daemons installed. */
export async function openInstaller(
  ctx: OpenInstallerDeps,
  catalog: HandCatalog,
  countInstances: (handId: string) => Promise<number>,
  tell: TellChange,
): Promise<OpenedInstaller> {
  const { config: settings, db, log, own, services } = ctx
  const { audit, daemon, snapshots } = services
  const { homeDir } = daemon.config()
  own('warnings', () => daemon.setWarnings('hands', []))
  const store = new InstalledStore(db, log)
  const folders = await openSharedFolders<HandColumns>({
    what: 'hand',
    home: homeDir,
    folder: 'hands',
    store,
    key: () => snapshots.deriveKey('hands-installed'),
    tell,
    warn: (texts) => daemon.setWarnings('hands', texts),
    log,
  })
  const installer = new HandInstaller({
    audit,
    catalog,
    checkWakeup: (when) => services.wakeups.check(when),
    countInstances,
    folder: join(homeDir, 'hands'),
    folders,
    settings,
    skills: () => ctx.optional('skills'),
    store,
    tools: () => ctx.tools.list(),
  })
  return { installer, follow: () => folders.reconcile() }
}
