import { open, mkdir, readdir, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { confine, findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { ArchiveLimits } from './opened.ts'
import { ArchiveName } from './schema.ts'
import type { Head } from './schema.ts'

export interface StoredBackup {
  readonly filename: string
  readonly path: string
  readonly sizeBytes: number
  readonly modifiedAt: string
  readonly head: Head | undefined
}

/** The folder of archives. A name that comes from outside becomes a path here and nowhere else. */
export class BackupFolder {
  readonly path: string
  readonly #limits: ArchiveLimits
  /**
   * The heads of archives, by path, size and time: opening one reads the names of all its files. Never more than there
   * are files.
   */
  #heads = new Map<string, Head>()
  constructor(path: string, limits: ArchiveLimits) {
    this.path = path
    this.#limits = limits
  }

  async make(): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 })
  }

  /** Newest first. */
  async list(): Promise<readonly StoredBackup[]> {
    const found: StoredBackup[] = []
    const heads = new Map<string, Head>()
    for (const filename of await this.names()) {
      const path = join(this.path, filename)
      const facts = await stat(path).catch(() => undefined /* deleted meanwhile */)
      if (!facts?.isFile()) continue
      const key = `${path} ${facts.size} ${facts.mtimeMs}`
      const head = this.#heads.get(key) ?? (await this.#head(path))
      if (head) heads.set(key, head)
      found.push({ filename, path, sizeBytes: facts.size, modifiedAt: facts.mtime.toISOString(), head })
    }
    this.#heads = heads
    return found.toSorted((a, b) => (a.modifiedAt < b.modifiedAt ? 1 : -1))
  }
  async names(): Promise<readonly string[]> {
    const entries = await readdir(this.path, { withFileTypes: true }).catch(whenMissing)
    return entries.filter((entry) => entry.isFile() && v.is(ArchiveName, entry.name)).map((entry) => entry.name)
  }

  /** The path of an archive. Throws `backup_not_found`. */
  async find(filename: string): Promise<string> {
    const names = await this.names()
    if (!names.includes(filename))
      throw new Refusal('backup_not_found', `There is no backup ${filename}${hintOf(filename, names)}`)
    return await confine(this.path, filename)
  }
  /** Removed on disk when it settles. Throws `backup_not_found`. */
  async remove(filename: string): Promise<void> {
    await unlink(await this.find(filename))
    await syncFolder(this.path)
  }

  /** What a run that was killed left half done. */
  async sweep(): Promise<void> {
    for (const entry of await readdir(this.path, { withFileTypes: true }).catch(whenMissing)) {
      if (entry.name.startsWith('.making-')) await rm(join(this.path, entry.name), { recursive: true, force: true })
    }
  }

  async #head(path: string): Promise<Head | undefined> {
    try {
      const { OpenedArchive } = await import('./opened.ts')
      using archive = await OpenedArchive.open(path, this.#limits)
      return await archive.head()
    } catch {
      return undefined /* listed as one that cannot be read */
    }
  }
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
/** Runs what writes below a folder. Throws `service_unavailable` when its disk is full. */
export async function refuseFullDisk<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && FULL_DISK.has(error.code))) throw error
    throw new Refusal('service_unavailable', `The disk of ${folder} is full: free some space, then try again`, {
      cause: error,
      retryAfterSecs: 5,
    })
  }
}
const FULL_DISK: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'SQLITE_FULL'])

function whenMissing(error: unknown): never[] {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
  throw error
}

/** The name that was meant, else the newest ones: their names begin with the time. */
function hintOf(filename: string, names: readonly string[]): string {
  const meant = suggest(findNearest(filename, names))
  if (meant !== '') return meant
  return names.length === 0
    ? '; there is none yet'
    : `; there are ${names.toSorted().toReversed().slice(0, 5).join(', ')}`
}
