import { join } from 'node:path'
import * as v from 'valibot'
import type { OfflineDeps } from 'svc/internal'
import { BackupFolder, refuseFullDisk } from './folder.ts'
import { makeBackup } from './making.ts'
import { stageRestore } from './restoring.ts'
import { Limits } from './schema.ts'

type Options = Readonly<Record<string, string | boolean | undefined>>
const text = (value: string | boolean | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined
const limitsOf = ({ config }: OfflineDeps) => {
  const plugins = v.parse(
    v.object({ plugins: v.optional(v.looseObject({ backups: v.optional(Limits, {}) }), {}) }),
    config,
  ).plugins
  const { max_files: maxFiles, max_bytes: maxBytes } = plugins.backups
  return { maxFiles, maxBytes }
}
const stamp = (): string => new Date().toISOString().replaceAll(/[-:.]/g, '')

/** A backup of a home that no daemon serves. `version` is whose it is. */
export async function createOffline(parts: OfflineDeps, options: Options): Promise<unknown> {
  const { databaseSnapshots, config } = parts
  const folder = new BackupFolder(join(databaseSnapshots.homeDir, 'backups'), limitsOf(parts))
  const { filename, path, sizeBytes } = await refuseFullDisk(databaseSnapshots.homeDir, () =>
    makeBackup(
      {
        databaseSnapshots,
        folder,
        version: text(options['version']) ?? 'unknown',
        config: () => config,
        now: () => new Date(),
        id: () => crypto.randomUUID().slice(0, 8),
      },
      { passphrase: text(options['passphrase']) },
    ),
  )
  return { filename, path, size_bytes: sizeBytes }
}

/** Checks an archive, unpacks it and plans the swap, which the caller then carries out. `file` is a path. */
export async function restoreOffline(parts: OfflineDeps, options: Options): Promise<unknown> {
  const { databaseSnapshots } = parts
  const id = `${stamp()}-${crypto.randomUUID().slice(0, 8)}`
  const staged = await refuseFullDisk(databaseSnapshots.homeDir, () =>
    stageRestore(databaseSnapshots, limitsOf(parts), {
      file: text(options['file']) ?? '',
      passphrase: text(options['passphrase']),
      id,
      at: new Date().toISOString(),
    }),
  )
  databaseSnapshots.planSwap(staged.plan)
  return {
    restored_files: staged.files,
    created_at: staged.manifest.created_at,
    svc_version: staged.manifest.svc_version,
  }
}
