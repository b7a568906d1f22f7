import { copyFileSync, existsSync, fsyncSync, openSync, closeSync, chmodSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { checkFile } from './check-file.ts'
import { findSidecarCopy } from './sidecars.ts'
import { syncFolder } from './sqlite-file.ts'
import { planSwap } from './swap.ts'

/**
 * Checks a copy of the database and plans to replace the database and its sidecar files with it. The caller holds the
 * lock of the home and carries out the plan. Throws and changes nothing if the copy is damaged.
 */
export async function stageDatabase(
  home: string,
  database: string,
  copy: string,
  sidecars: readonly string[],
): Promise<{ readonly database: string }> {
  const damage = await checkFile(copy)
  if (damage !== undefined) throw new Error(`it is damaged (${damage})`)
  const id = `${new Date().toISOString().replaceAll(/[-:.]/g, '')}-${process.pid}`
  const staged = `${database}.restore-${id}`
  const kept = `${database}.damaged-${id}`
  take(copy, staged)
  // A sidecar file without a copy stays: it shows what the restored database lacks.
  const sidecarMoves = sidecars.flatMap((name) => {
    const sidecarCopy = findSidecarCopy(copy, name)
    if (sidecarCopy === undefined) return []
    const from = join(home, `.restore-${id}.${name}`)
    take(sidecarCopy, from)
    return [{ from, to: join(home, name), keep: join(home, `${name}.before-restore-${id}`) }]
  })
  planSwap(home, {
    id,
    planned_at: new Date().toISOString(),
    facts: { what: `database from ${basename(copy)}` },
    moves: [
      // The write-ahead log belongs to the old database and would be replayed into the new one.
      ...['-wal', '-shm']
        .filter((rest) => existsSync(database + rest))
        .map((rest) => ({ from: null, to: database + rest, keep: kept + rest })),
      { from: staged, to: database, keep: kept },
      ...sidecarMoves,
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
