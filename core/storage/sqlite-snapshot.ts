import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type BetterSqlite3 from 'better-sqlite3'
import { syncFolder } from './sqlite-file.ts'

/** A consistent copy of a database in use, mode 0600, whole or not there. */
export async function snapshotSqlite(db: BetterSqlite3.Database, file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.part`
  await rm(draft, { force: true })
  try {
    await (await open(draft, 'wx', 0o600)).close()
    // Copies a hundred pages at a time and yields; a write of ours meanwhile goes into the copy too.
    await db.backup(draft)
    await chmod(draft, 0o600)
    const handle = await open(draft, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
    syncFolder(dirname(file))
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
