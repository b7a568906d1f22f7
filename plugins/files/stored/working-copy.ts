import { createHash, randomUUID } from 'node:crypto'
import { lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkFileName, openConfined, removeFolder } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { WorkingFolder } from '../contract.ts'
import { hasCode, whenMissing } from '../disk.ts'
import { listFiles } from '../folder-list.ts'
import type { SizeLimits } from '../size-limits.ts'
import type { FileStore, StoredChange } from './store.ts'

export interface WorkingCopyDeps {
  readonly files: FileStore
  readonly sizes: SizeLimits
  /** The folder of this machine where copies are made. */
  readonly base: string
  readonly maxBytes: number
  readonly maxFiles: number
  /** Throws when the agent was removed while files were written. */
  readonly refuseGone: () => Promise<void>
}
/** What a file was when it was copied. */
interface Original {
  readonly hash: string
  /** `undefined`: its content lies in the folder of the originals. */
  readonly objectKey: string | undefined
}

const COPY = '.copy.'
/** Where programs find their folder for temporary files: see `SpawnRequest.cwd`. */
const TEMPORARY = '.tmp/'
const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex')

/**
 * The files of a workspace in a folder of this machine, for one program. What it changed is kept in one step, and only
 * while every file that it changed is still what was copied, so that of two programs that change one file the second
 * one is told. Files that it did not change may change elsewhere meanwhile.
 */
export class WorkingCopy implements WorkingFolder {
  readonly path: string
  readonly #deps: WorkingCopyDeps
  readonly #agentId: string
  readonly #folder: string
  readonly #originals = new Map<string, Original>()

  constructor(deps: WorkingCopyDeps, agentId: string) {
    this.#deps = deps
    this.#agentId = agentId
    this.#folder = join(deps.base, `${COPY}${randomUUID()}`)
    this.path = join(this.#folder, 'files')
  }

  /** Throws `payload_too_large`. */
  async fill(): Promise<void> {
    const { files, maxBytes, maxFiles } = this.#deps
    const rows = await files.list(this.#agentId)
    const size = rows.reduce((sum, row) => sum + row.size_bytes, 0)
    if (rows.length > maxFiles || size > maxBytes) throw tooLarge(rows.length, size, this.#deps)
    for (const folder of [this.path, this.#before('')]) await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const { path } of rows) {
      checkFileName(path)
      const found = await files.read(this.#agentId, path, maxBytes)
      // Removed meanwhile.
      if (!found?.content) continue
      const objectKey = found.object_key ?? undefined
      this.#originals.set(path, { hash: hashOf(found.content), objectKey })
      await writeNew(join(this.path, path), found.content)
      if (objectKey === undefined) await writeNew(this.#before(path), found.content)
    }
  }

  async save(): Promise<void> {
    const changes = await this.#changes()
    if (changes.length === 0) return
    const { files, refuseGone } = this.#deps
    try {
      await files.change(this.#agentId, changes, new Date().toISOString())
    } catch (error) {
      const others = await this.#changedElsewhere(changes)
      if (others.length === 0) throw error
      throw notKept(`${quote(others)} changed elsewhere while the program ran: read it again`, 'conflict', error)
    }
    await refuseGone()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await removeFolder(this.#folder)
  }

  /** In the order of their names, so that two batches do not wait for each other. */
  async #changes(): Promise<readonly StoredChange[]> {
    const { maxBytes, maxFiles } = this.#deps
    const all = await listFiles(this.path, undefined, maxFiles + 1)
    const found = all.filter(({ name }) => !name.startsWith(TEMPORARY))
    const size = found.reduce((sum, file) => sum + file.sizeBytes, 0)
    if (found.length > maxFiles || size > maxBytes) {
      const { code, message } = tooLarge(found.length, size, this.#deps)
      throw notKept(message, code)
    }
    const changes: StoredChange[] = []
    for (const { name, problem } of found) {
      if (problem !== undefined) throw notKept(`"${name}" cannot be read (${problem})`, 'conflict')
      orNotKept(() => checkFileName(name))
      const content = await this.#read(name)
      const original = this.#originals.get(name)
      if (original?.hash === hashOf(content)) continue
      orNotKept(() => this.#deps.sizes.check(name, content.byteLength))
      changes.push({ path: name, before: await this.#version(name), after: { path: name, content } })
    }
    const names = new Set(found.map(({ name }) => name))
    for (const name of this.#originals.keys()) {
      if (names.has(name) || name.startsWith(TEMPORARY)) continue
      if ((await lstat(join(this.path, name)).catch(whenMissing))?.isFile())
        throw notKept(`"${name}" has a hard link now`, 'conflict')
      changes.push({ path: name, before: await this.#version(name), after: undefined })
    }
    return changes.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  }
  async #read(name: string): Promise<Uint8Array> {
    const handle = await openConfined(this.path, name, 'read')
    try {
      return await handle.readFile()
    } finally {
      await handle.close()
    }
  }
  async #version(name: string): Promise<StoredChange['before']> {
    const original = this.#originals.get(name)
    if (!original) return undefined
    const { objectKey } = original
    return objectKey === undefined ? { content: await readFile(this.#before(name)) } : { objectKey }
  }
  async #changedElsewhere(changes: readonly StoredChange[]): Promise<readonly string[]> {
    const { files, maxBytes } = this.#deps
    const names: string[] = []
    for (const { path } of changes) {
      const now = await files.read(this.#agentId, path, maxBytes)
      const original = this.#originals.get(path)
      const isSame = now?.content ? hashOf(now.content) === original?.hash : !now && !original
      if (!isSame || (original?.objectKey ?? null) !== (now?.object_key ?? null)) names.push(path)
    }
    return names
  }
  #before(name: string): string {
    return join(this.#folder, 'before', name)
  }
}

/** Removes copies of programs that were cut off with the daemon. */
export async function removeCopies(base: string): Promise<number> {
  const names = (await readdir(base).catch(whenMissing)) ?? []
  const copies = names.filter((name) => name.startsWith(COPY))
  for (const name of copies) await removeFolder(join(base, name))
  return copies.length
}

async function writeNew(path: string, content: Uint8Array): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, content, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (!hasCode(error, 'ENOSPC', 'EDQUOT')) throw error
    throw new Refusal('service_unavailable', 'There is no room on this machine for the files of the workspace', {
      cause: error,
    })
  }
}

const quote = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(', ')
function notKept(why: string, code: Refusal['code'], cause?: unknown): Refusal {
  return new Refusal(code, `What the program did to files of the workspace was not kept: ${why}`, { cause })
}
function orNotKept(check: () => unknown): void {
  try {
    check()
  } catch (error) {
    if (error instanceof Refusal) throw notKept(error.message, error.code, error)
    throw error
  }
}
function tooLarge(
  count: number,
  size: number,
  { maxBytes, maxFiles }: Pick<WorkingCopyDeps, 'maxBytes' | 'maxFiles'>,
): Refusal {
  return new Refusal(
    'payload_too_large',
    `The workspace has ${count} files of ${size} bytes; programs get ${maxFiles} files of ${maxBytes} bytes at most ` +
      '(plugins.files.max_copy_files, max_copy_bytes): remove some',
    { details: { limit_bytes: maxBytes } },
  )
}
