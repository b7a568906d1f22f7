import { existsSync } from 'node:fs'
import { copyFile, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ConsolaInstance } from 'consola'
import type { Config } from '../config/schema.ts'
import type { Database, Migration } from '../storage/database.ts'

/**
 * Copies the database before its tables change, with the anchor of the audit trail, which may be behind the copy and
 * never ahead of it.
 */
export async function copyBeforeMigration(
  { database, config, log }: { readonly database: Database; readonly config: Config; readonly log: ConsolaInstance },
  plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[],
): Promise<void> {
  if (database.dialect !== 'sqlite' || config.database_url === 'sqlite::memory:') return
  if ((await isNew(database)) || !(await database.pending(plugins))) return
  const file = join(
    config.data_dir,
    'snapshots',
    `before-migration-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db`,
  )
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const anchor = join(config.home_dir, 'audit.anchor')
  if (existsSync(anchor)) await copyFile(anchor, file.replace(/\.db$/, '.anchor'))
  await database.snapshot(file)
  log.info(`the database is copied to ${file} before its tables change`)
}

async function isNew(database: Database): Promise<boolean> {
  const found = await database.sql.one<{
    count: number
  }>`SELECT count(*) AS count FROM core_migration WHERE plugin <> 'core-storage'`
  return (found?.count ?? 0) === 0
}
