import { copyFileSync, existsSync, fsyncSync, openSync, closeSync, chmodSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { checkFile } from './check-file.ts'
import { syncFolder } from './sqlite-file.ts'
import { planSwap } from './swap.ts'

/**
 * Checks a copy of the database and plans that it takes the place of the database, with the anchor of the audit
 * trail that was copied
 * with it. The caller holds the lock of the home and carries the plan out. Throws and changes nothing when the copy
 * is damaged.
 */
export async function stageDatabase(
  home: string,
  database: string,
  copy: string,
): Promise<{ readonly database: string }> {
  const damage = await checkFile(copy)
  if (damage !== undefined) throw new Error(`it is damaged (${damage})`)
  const id = `${new Date().toISOString().replaceAll(/[-:.]/g, '')}-${process.pid}`
  const staged = `${database}.restore-${id}`
  const kept = `${database}.damaged-${id}`
  take(copy, staged)
  const anchor = copy.replace(/\.db$/, '.anchor')
  const stagedAnchor = join(home, `.restore-${id}.anchor`)
  if (existsSync(anchor)) take(anchor, stagedAnchor)
  const anchorFile = join(home, 'audit.anchor')
  planSwap(home, {
    id,
    planned_at: new Date().toISOString(),
    facts: { what: `database from ${basename(copy)}` },
    moves: [
      // Its log belongs to the old one and would be read into the new one.
      ...['-wal', '-shm']
        .filter((rest) => existsSync(database + rest))
        .map((rest) => ({ from: null, to: database + rest, keep: kept + rest })),
      { from: staged, to: database, keep: kept },
      // Without one of its own the present one stays, and tells that entries of the trail are gone.
      ...(existsSync(stagedAnchor)
        ? [{ from: stagedAnchor, to: anchorFile, keep: join(home, `audit.anchor.before-restore-${id}`) }]
        : []),
    ],
  })
  return { database }
}

function take(from: string, to: string): void {
  rmSync(to, { force: true })
  copyFileSync(from, to)
  chmodSync(to, 0o600)
  const handle = openSync(to, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  syncFolder(dirname(to))
}
