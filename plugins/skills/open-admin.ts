import { join } from 'node:path'
import { openSharedFolders } from 'svc/internal'
import type { Configuration, Daemon, DatabaseSnapshots, TellChange } from 'svc/internal'
import type { PluginContext } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Screening } from '../screening/contract.ts'
import { SkillAdmin } from './admin.ts'
import type { SkillCatalog } from './catalog.ts'
import type { Settings } from './config.ts'
import type { Hubs } from './hub/open.ts'
import { Installer } from './install/service.ts'
import { InstallStore } from './install/store.ts'
import type { SkillColumns } from './install/store.ts'

export type OpenAdminDeps = Pick<
  PluginContext<Settings, {}, {}>,
  'config' | 'db' | 'fetch' | 'log' | 'own' | 'tools' | 'vault'
> & {
  readonly services: {
    readonly audit: Audit
    readonly configuration: Configuration
    readonly daemon: Daemon
    readonly snapshots: DatabaseSnapshots
  }
  optional(name: 'screening'): Screening | undefined
}

export interface OpenedAdmin {
  readonly admin: SkillAdmin
  /** Does what another daemon did. */
  follow(): Promise<void>
}
/** What installs skills, after it has ended what a crash cut off. */
export async function openAdmin(
  ctx: OpenAdminDeps,
  catalog: () => Promise<SkillCatalog>,
  tell: TellChange,
): Promise<OpenedAdmin> {
  const { config: settings, db, fetch, log, own, services, tools, vault } = ctx
  const { daemon } = services
  const { homeDir } = daemon.config()
  const folder = join(homeDir, 'skills')
  own('warnings', () => daemon.setWarnings('skills', []))
  let opened: Promise<Hubs> | undefined
  const hubs = (): Promise<Hubs> =>
    (opened ??= import('./hub/open.ts').then(({ openHubs }) => openHubs(fetch, settings)))
  const store = new InstallStore(db, log)
  const folders = await openSharedFolders<SkillColumns>({
    what: 'skill',
    home: homeDir,
    folder: 'skills',
    store,
    key: () => services.snapshots.deriveKey('skills-installed'),
    proven: ({ permissions }) => ({ permissions }),
    tell,
    warn: (texts) => daemon.setWarnings('skills', texts),
    log,
  })
  const installer = new Installer({
    ...services,
    catalog,
    store,
    folders,
    screening: () => ctx.optional('screening'),
    fetch,
    vault,
    hubs,
    settings,
  })
  await installer.reconcile()
  return { admin: new SkillAdmin({ installer, hubs, catalog, tools, folder }), follow: () => installer.reconcile() }
}
