import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, openForeignDatabase } from 'svc/internal'
import type { ForeignDatabase } from 'svc/internal'
import type { SourceFolder } from './source-folder.ts'

/** Removes what a run that was killed left in the folder of the daemon's data. */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => []))
    if (/^migrate-(skill-)?[\da-f-]{36}$/.test(name)) await rm(join(folder, name), { recursive: true, force: true })
}

/** Copies of databases of a source, removed with it: SQLite writes beside a database, also when it only reads. */
export class Scratch implements AsyncDisposable {
  readonly #folder: string
  readonly #open: ForeignDatabase[] = []
  constructor(folder: string) {
    this.#folder = folder
  }

  /** A database with what its write-ahead log has; `undefined` when there is none or it cannot be read. */
  async open(source: SourceFolder, name: string): Promise<ForeignDatabase | undefined> {
    if (!(await source.has(name))) return undefined
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const file = join(this.#folder, `${randomUUID()}.db`)
    if (!(await source.copy(name, file))) return undefined
    await source.copy(`${name}-wal`, `${file}-wal`)
    try {
      const database = await openForeignDatabase(file)
      this.#open.push(database)
      return database
    } catch (error) {
      source.skip(name, `it cannot be read: ${messageOf(error)}`)
      return undefined
    }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    for (const database of this.#open) database[Symbol.dispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}
