import { join } from 'node:path'
import { Configuration, Daemon, DaemonListening, DatabaseSnapshots } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { backupRoutes } from './routes.ts'
import { Limits } from './schema.ts'
import type { Backups } from './service.ts'

/** How often to check whether a copy of the database is due. */
const LOOK_MS = 60_000

export default definePlugin({
  name: 'backups',
  version: '1.0.0',
  config: Limits,
  requires: { audit: Audit, daemon: Daemon, databaseSnapshots: DatabaseSnapshots, configuration: Configuration },
  offline: {
    create: async (parts, options) => (await import('./offline.ts')).createOffline(parts, options),
    restore: async (parts, options) => (await import('./offline.ts')).restoreOffline(parts, options),
  },
  pages: [
    { path: 'backups', title: 'Backups', group: 'Operations', file: 'pages/backups.html', assets: ['backups.js'] },
  ],
  setup({ config, hooks, jobs, log, routes, run, services: { audit, daemon, databaseSnapshots, configuration } }) {
    const limits = { maxFiles: config.max_files, maxBytes: config.max_bytes, maxBackups: config.max_backups }
    const openBackups = async (): Promise<Backups> => {
      const [{ Backups }, { BackupFolder }] = await Promise.all([import('./service.ts'), import('./folder.ts')])
      return new Backups({
        databaseSnapshots,
        audit,
        limits,
        folder: new BackupFolder(join(databaseSnapshots.homeDir, 'backups'), limits),
        version: daemon.build.version,
        config: () => configuration.read(),
        now: () => new Date(),
        id: () => crypto.randomUUID().slice(0, 8),
        restart: (reason) => daemon.restart(reason),
      })
    }
    let opened: Promise<Backups> | undefined
    const backups = (): Promise<Backups> => (opened ??= openBackups())
    routes.add(...backupRoutes(backups))
    hooks.on(DaemonListening, () =>
      run(async () => {
        const service = await backups()
        await service.recordRestore()
        await service.sweep()
      }),
    )
    if (config.snapshot_interval_secs > 0 && keepable(databaseSnapshots)) {
      jobs.every('snapshot', Math.min(LOOK_MS, config.snapshot_interval_secs * 1000), async () => {
        const { Snapshots } = await import('./snapshots.ts')
        await new Snapshots(
          databaseSnapshots,
          { intervalMs: config.snapshot_interval_secs * 1000, kept: config.snapshots_kept },
          log,
        ).take()
      })
    }
    return {}
  },
})

/** Whether there is a database file that can be copied. */
function keepable(databaseSnapshots: DatabaseSnapshots): boolean {
  try {
    return databaseSnapshots.databaseName() !== ''
  } catch {
    return false /* on a server, in memory or elsewhere: that is the answer */
  }
}
