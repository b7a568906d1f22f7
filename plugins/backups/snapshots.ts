import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSnapshots } from 'svc/internal'

const NAME = /^svc-(\d{8}T\d{9}Z)\.db$/

export interface SnapshotRules {
  readonly intervalMs: number
  readonly kept: number
}
export interface SnapshotLog {
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

/** Verified copies of the database beside it, to be restored when the file itself is damaged. */
export class Snapshots {
  readonly #databaseSnapshots: DatabaseSnapshots
  readonly #rules: SnapshotRules
  readonly #log: SnapshotLog
  readonly #now: () => Date
  constructor(
    databaseSnapshots: DatabaseSnapshots,
    rules: SnapshotRules,
    log: SnapshotLog,
    now: () => Date = () => new Date(),
  ) {
    this.#databaseSnapshots = databaseSnapshots
    this.#rules = rules
    this.#log = log
    this.#now = now
  }

  get folder(): string {
    return join(this.#databaseSnapshots.dataDir, 'snapshots')
  }

  /** Names, newest first. */
  async list(): Promise<readonly string[]> {
    const found = await readdir(this.folder).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
      throw error
    })
    return found
      .filter((name) => NAME.test(name))
      .toSorted()
      .toReversed()
  }

  /**
   * Takes one when the newest is old enough, and drops those beyond the number to keep. Returns its name, if one was
   * taken.
   */
  async take(): Promise<string | undefined> {
    const [newest] = await this.list()
    const now = this.#now()
    if (newest !== undefined && now.getTime() - timeOf(newest) < this.#rules.intervalMs) return undefined
    const database = join(this.#databaseSnapshots.dataDir, this.#databaseSnapshots.databaseName())
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const [{ size }, { bavail, bsize }] = await Promise.all([stat(database), statfs(this.folder)])
    if (bavail * bsize < size * 2) {
      this.#log.warn(
        `no copy of the database is taken: ${Math.floor((bavail * bsize) / 1_048_576)} MiB are free, and it ` +
          `needs ${Math.ceil((size * 2) / 1_048_576)}`,
      )
      return undefined
    }
    const name = `svc-${now.toISOString().replaceAll(/[-:.]/g, '')}`
    const [file, anchor] = [join(this.folder, `${name}.db`), join(this.#databaseSnapshots.homeDir, 'audit.anchor')]
    // The anchor first: it may be behind the trail in the copy, never ahead of it.
    if (existsSync(anchor)) await copyFile(anchor, join(this.folder, `${name}.anchor`))
    const draft = join(this.folder, `${name}.draft`)
    await this.#databaseSnapshots.snapshot(draft)
    const damage = await this.#databaseSnapshots.checkFile(draft)
    for (const rest of ['-wal', '-shm']) await rm(draft + rest, { force: true })
    if (damage !== undefined) {
      for (const rest of [draft, join(this.folder, `${name}.anchor`)]) await rm(rest, { force: true })
      this.#log.error(
        `the database is damaged: a copy of it does not pass the check (${damage}). Earlier copies are kept`,
      )
      return undefined
    }
    const { rename } = await import('node:fs/promises')
    await rename(draft, file)
    await this.#thin()
    return `${name}.db`
  }

  async #thin(): Promise<void> {
    for (const name of (await this.list()).slice(this.#rules.kept)) {
      for (const file of [name, name.replace(/\.db$/, '.anchor')]) await rm(join(this.folder, file), { force: true })
    }
    for (const name of await readdir(this.folder)) {
      if (/^svc-.*\.(?:draft|draft\.part)$/.test(name)) await rm(join(this.folder, name), { force: true })
    }
  }
}

function timeOf(name: string): number {
  const digits = NAME.exec(name)?.[1] ?? ''
  return Date.parse(digits.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/, '$1-$2-$3T$4:$5:$6.$7Z'))
}
