import { existsSync } from 'node:fs'
import { copyFile, mkdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal } from 'svc/sdk'
import type { DatabaseSnapshots } from 'svc/internal'
import { ArchiveWriter, PURPOSE } from './archive.ts'
import { copyPlain, plainFiles } from './contents.ts'
import { syncFolder } from './folder.ts'
import type { BackupFolder } from './folder.ts'
import type { Head, Manifest } from './schema.ts'

/** Where things lie in an archive. */
export const DATA = 'data/'
export const ANCHOR = 'home/audit.anchor'
export const SEALED_KEY = 'home/vault.key.sealed'
const CONFIG = 'config.json'
const MAX_SKIPPED = 1_000

export interface BackupMakerDeps {
  readonly databaseSnapshots: DatabaseSnapshots
  readonly folder: BackupFolder
  readonly version: string
  /** With `***` for secrets. */
  readonly config: () => Readonly<Record<string, unknown>>
  readonly now: () => Date
  readonly id: () => string
}
export interface MadeBackup {
  readonly filename: string
  readonly path: string
  readonly sizeBytes: number
  readonly manifest: Manifest
}

/**
 * Writes an archive while the daemon works: a consistent copy of the database, then the files as they are. It gets its
 * name only when it is complete and on disk. `kind` becomes part of the name.
 */
export async function makeBackup(
  { databaseSnapshots, folder, version, config, now, id }: BackupMakerDeps,
  options: { readonly passphrase?: string | undefined; readonly kind?: string; readonly signal?: AbortSignal },
): Promise<MadeBackup> {
  const database = databaseSnapshots.databaseName()
  const key = await databaseSnapshots.deriveKey(PURPOSE)
  if (!key) throw new Refusal('conflict', 'This installation has no vault key yet, which backups are marked with')
  await folder.make()
  const work = join(folder.path, `.making-${id()}`)
  await mkdir(work, { mode: 0o700 })
  try {
    const at = now().toISOString()
    const draft = join(work, 'backup.zip')
    const archive = await ArchiveWriter.create(draft)
    const held = new Set<Head['components'][number]>(['data', 'config'])
    // Before the database: an anchor may be behind the chain, never ahead of it.
    const anchor = join(databaseSnapshots.homeDir, 'audit.anchor')
    if (existsSync(anchor)) {
      await copyFile(anchor, join(work, 'anchor'))
      await archive.addFile(join(work, 'anchor'), ANCHOR)
      held.add('audit_anchor')
    }
    await databaseSnapshots.snapshot(join(work, 'database'))
    await archive.addFile(join(work, 'database'), DATA + database)
    await rm(join(work, 'database'))
    const skipped: string[] = []
    const skip = (name: string): void => {
      if (skipped.length < MAX_SKIPPED) skipped.push(name)
    }
    for await (const name of plainFiles(databaseSnapshots.dataDir, database, skip)) {
      options.signal?.throwIfAborted()
      const copied = await copyPlain(databaseSnapshots.dataDir, name, join(work, 'file'))
      if (!copied) {
        skip(name)
        continue
      }
      if (copied.bytes) await archive.addBytes(copied.bytes, DATA + name, copied)
      else await archive.addFile(join(work, 'file'), DATA + name, copied)
      if (name.startsWith('workspaces/')) held.add('workspaces')
      if (name.startsWith('files/')) held.add('files')
    }
    archive.addText(`${JSON.stringify(config(), null, 2)}\n`, CONFIG)
    if (options.passphrase !== undefined) {
      archive.addText(await databaseSnapshots.sealKey(options.passphrase), SEALED_KEY)
      held.add('vault_key')
    }
    const manifest = await archive.end(
      { format: 'svc-backup-1', created_at: at, svc_version: version, components: [...held] },
      key,
      { database, skipped },
    )
    const filename = `svc_${options.kind ?? 'backup'}_${at.replaceAll(/[-:.]/g, '')}.zip`
    const path = join(folder.path, filename)
    await rename(draft, path)
    await syncFolder(folder.path)
    return { filename, path, sizeBytes: (await stat(path)).size, manifest }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
