import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ConsolaInstance } from 'consola'
import type { Config } from '../config/schema.ts'
import type { Database, Migration } from '../storage/database.ts'
import { copySidecars } from '../storage/sidecars.ts'

export interface UpgradeDeps {
  readonly database: Database
  readonly config: Config
  readonly log: ConsolaInstance
  /** Sidecar files of the database that the plugins declare. */
  readonly sidecars: () => readonly string[]
}

/**
 * Copies the database and its sidecar files before a migration changes its tables. On PostgreSQL, which is copied with
 * its own tools, throws `DatabaseIncomplete` when tables are gone.
 */
export async function copyBeforeMigration(
  { database, config, log, sidecars }: UpgradeDeps,
  plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[],
): Promise<void> {
  if (database.dialect === 'postgresql') {
    const { refuseMissingTables } = await import('../storage/missing-tables.ts')
    return refuseMissingTables(database, plugins)
  }
  if (config.database_url === 'sqlite::memory:') return
  if ((await isNew(database)) || !(await database.pending(plugins))) return
  const file = join(
    config.data_dir,
    'snapshots',
    `before-migration-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db`,
  )
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await copySidecars(config.home_dir, sidecars(), file)
  await database.snapshot(file)
  log.info(`database copied to ${file} before migrating its tables`)
}

async function isNew(database: Database): Promise<boolean> {
  const found = await database.sql.one<{
    count: number
  }>`SELECT count(*) AS count FROM core_migration WHERE plugin <> 'core-storage'`
  return (found?.count ?? 0) === 0
}
