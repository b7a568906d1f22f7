import { Refusal } from 'svc/sdk'
import type { DatabaseSnapshots } from 'svc/internal'
import type { Audit } from '../audit/contract.ts'
import { refuseFullDisk } from './folder.ts'
import type { BackupFolder, StoredBackup } from './folder.ts'
import type { MadeBackup, BackupMakerDeps } from './making.ts'
import type { ArchiveLimits } from './opened.ts'
import type { Manifest } from './schema.ts'

export interface BackupDeps extends BackupMakerDeps {
  readonly databaseSnapshots: DatabaseSnapshots
  readonly folder: BackupFolder
  readonly audit: Audit
  readonly limits: ArchiveLimits & { readonly maxBackups: number }
  readonly restart: (reason: string) => void
}

/** Makes archives and puts them back, one act at a time. */
export class Backups {
  readonly #deps: BackupDeps
  #busy: string | undefined
  #swept: Promise<void> | undefined
  constructor(deps: BackupDeps) {
    this.#deps = deps
  }

  list(): Promise<readonly StoredBackup[]> {
    return this.#deps.folder.list()
  }

  /**
   * Throws `conflict` while another backup or restore runs, when there is nothing to copy, and when there are too many.
   */
  create(passphrase: string | undefined, signal: AbortSignal): Promise<MadeBackup> {
    return this.#alone('a backup', async () => {
      const { folder, limits } = this.#deps
      if ((await folder.names()).length >= limits.maxBackups)
        throw new Refusal(
          'conflict',
          `There are ${limits.maxBackups} backups already: delete some, or raise plugins.backups.max_backups`,
        )
      return await this.#make({ passphrase, signal })
    })
  }

  /** Throws `backup_not_found`. */
  remove(filename: string): Promise<void> {
    return this.#alone('a removal', async () => {
      const { folder, audit } = this.#deps
      await folder.find(filename)
      // Recorded before it is done: an unrecorded removal would be worse than a record of one that failed.
      await audit.write({ event: 'backup_deleted', details: `backup ${filename} deleted` })
      await folder.remove(filename)
    })
  }

  /**
   * Verifies the archive, keeps the present data as a backup, and restarts the daemon on the restored data. Nothing
   * changes before that. Throws `backup_not_found`, `invalid_request` for an invalid archive, and `conflict` where the database is no
   * file.
   */
  restore(
    filename: string,
    passphrase: string | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly manifest: Manifest; readonly files: number; readonly previous: string }> {
    return this.#alone('a restore', async () => {
      const { folder, databaseSnapshots, limits, audit, restart, now, id } = this.#deps
      databaseSnapshots.databaseName()
      const file = await folder.find(filename)
      const { stageRestore } = await import('./restoring.ts')
      const staged = await stageRestore(databaseSnapshots, limits, {
        file,
        passphrase,
        id: `${now().toISOString().replaceAll(/[-:.]/g, '')}-${id()}`,
        at: now().toISOString(),
        signal,
      })
      try {
        const { filename: previous } = await this.#make({ kind: 'before-restore', signal })
        await audit.write({
          event: 'backup_restored',
          details: `restore of ${filename} begins; the previous data is in ${previous}`,
        })
        databaseSnapshots.planSwap(staged.plan)
        restart(`restore of ${filename}`)
        return { manifest: staged.manifest, files: staged.files, previous }
      } catch (error) {
        await staged.discard()
        throw error
      }
    })
  }

  /** Records in the trail what the last start restored. */
  async recordRestore(): Promise<void> {
    const { databaseSnapshots, audit } = this.#deps
    const restored = databaseSnapshots.completedSwap()
    if (!restored) return
    await audit.write({
      event: 'backup_restored',
      details: `restored: ${Object.values(restored.facts).join(', ')}; the trail continues from the restored one`,
    })
    databaseSnapshots.forgetSwap()
  }
  /** Removes what runs that were killed left behind; once, before anything is made. */
  sweep(): Promise<void> {
    return (this.#swept ??= this.#sweep())
  }

  async #sweep(): Promise<void> {
    const { sweepRestores } = await import('./restoring.ts')
    await this.#deps.folder.sweep()
    await sweepRestores(this.#deps.databaseSnapshots, undefined)
  }

  async #make(options: {
    readonly passphrase?: string | undefined
    readonly kind?: string
    readonly signal: AbortSignal
  }): Promise<MadeBackup> {
    const { makeBackup } = await import('./making.ts')
    const made = await makeBackup(this.#deps, options)
    await this.#deps.audit.write({
      event: 'backup_created',
      details: `backup ${made.filename} made: ${made.manifest.files.length} files, ${made.sizeBytes} bytes`,
    })
    return made
  }

  async #alone<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (this.#busy !== undefined)
      throw new Refusal('conflict', `${this.#busy} is under way: try again when it has ended`)
    this.#busy = what.replace(/^a /, 'A ')
    try {
      await this.sweep()
      return await refuseFullDisk(this.#deps.databaseSnapshots.homeDir, work)
    } finally {
      this.#busy = undefined
    }
  }
}
