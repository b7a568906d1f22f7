import { createWriteStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openConfined } from 'svc/internal'
import { Refusal } from 'svc/sdk'

/** Folders of the data directory that are not backed up: copies of the database, and folders set aside by a restore. */
const LEFT_OUT = new Set(['snapshots', 'reserve'])

export interface Traits {
  readonly executable: boolean
  readonly mtimeMs: number
}
/**
 * `bytes` instead of a copy on disk: workspaces have thousands of small files, and the copy is most of what one costs.
 */
export interface Copied extends Traits {
  readonly bytes?: Buffer
}
const SMALL_BYTES = 65_536

/**
 * Names of all plain files below a folder, with `/` between their parts, sorted. Links and special files go to `skip`.
 */
export async function* plainFiles(
  root: string,
  database: string,
  skip: (name: string) => void,
  folder = '',
): AsyncGenerator<string> {
  const found = await readdir(join(root, folder), { withFileTypes: true }).catch((error: unknown) => {
    // An agent was killed in between, and its folder removed.
    if (folder !== '' && isGone(error)) return []
    throw error
  })
  const entries = found.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`
    // The database is backed up as a consistent copy, which includes its log.
    if (folder === '' && (LEFT_OUT.has(name) || name === database || name.startsWith(`${database}-`))) continue
    if (entry.isDirectory()) yield* plainFiles(root, database, skip, name)
    else if (entry.isFile()) yield name
    else skip(name)
  }
}

/**
 * Copies a file that may change at any time, without following links; a small one is read at once. `undefined` when it
 * is missing or not a plain file.
 */
export async function copyPlain(root: string, name: string, target: string): Promise<Copied | undefined> {
  let handle
  try {
    handle = await openConfined(root, name, 'read')
  } catch (error) {
    if (error instanceof Refusal || isGone(error)) return undefined
    throw error
  }
  try {
    const { mode, mtimeMs, size } = await handle.stat()
    const traits = { executable: (mode & 0o100) !== 0, mtimeMs: Math.round(mtimeMs) }
    if (size <= SMALL_BYTES) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(size + 1), 0, size + 1, 0)
      // It may have grown since its size was read.
      if (bytesRead <= size) return { ...traits, bytes: buffer.subarray(0, bytesRead) }
    }
    await pipeline(handle.createReadStream({ autoClose: false, start: 0 }), createWriteStream(target, { mode: 0o600 }))
    return traits
  } finally {
    await handle.close()
  }
}
function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
}
