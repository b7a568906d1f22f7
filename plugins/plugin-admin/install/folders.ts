import { randomUUID } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { removeFolder } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'

/** Hidden folders beside the plugins, which nothing loads. */
export const OLD = '.old-'
export const STAGING = '.staging-'
export const REMOVED = '.removed-'
export const PROOF = '.proof-'

export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined /* that is the answer */)) !== undefined
}

/** Bytes of all files below a folder. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true })
  return await sum(folder, entries)
}
/** As `sizeOf`, without the dependencies that lie in the folder itself. */
export async function sizeWithoutModules(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true })
  return await sum(
    folder,
    entries.filter(({ name }) => name !== 'node_modules'),
  )
}
async function sum(folder: string, entries: readonly Dirent[]): Promise<number> {
  let bytes = 0
  for (const entry of entries) {
    const path = join(folder, entry.name)
    bytes += entry.isDirectory() ? await sizeOf(path) : (await lstat(path)).size
  }
  return bytes
}

/** Renames, durable when it settles. */
export async function moveFolder(from: string, to: string): Promise<void> {
  await rename(from, to)
  const handle = await open(dirname(to), 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Puts a folder in place of another one, which is kept under a hidden name until `drop` or `restore`. */
export class FolderSwap {
  readonly #target: string
  readonly #old: string
  constructor(plugins: string, name: string) {
    this.#target = join(plugins, name)
    this.#old = join(plugins, `${OLD}${name}`)
  }
  get target(): string {
    return this.#target
  }

  async replace(staged: string): Promise<void> {
    await removeFolder(this.#old)
    if (await exists(this.#target)) await moveFolder(this.#target, this.#old)
    await moveFolder(staged, this.#target)
  }
  /** Puts the folder before back; without one, there is none afterwards. */
  async restore(): Promise<void> {
    if (await exists(this.#target)) await removeMoved(this.#target)
    if (await this.isKept()) await moveFolder(this.#old, this.#target)
  }
  async drop(): Promise<void> {
    await removeFolder(this.#old)
  }
  isKept(): Promise<boolean> {
    return exists(this.#old)
  }
}

/** Puts the dependencies in a staging folder in place of those of a plugin, which stay there until it is removed. */
export class ModulesSwap {
  readonly #current: string
  readonly #staged: string
  readonly #old: string
  #isPlaced = false
  constructor(plugin: string, staging: string) {
    this.#current = join(plugin, 'node_modules')
    this.#staged = join(staging, 'node_modules')
    this.#old = join(staging, 'old')
  }

  async replace(): Promise<void> {
    if (await exists(this.#current)) await moveFolder(this.#current, this.#old)
    if (!(await exists(this.#staged))) return
    this.#isPlaced = true
    await moveFolder(this.#staged, this.#current)
  }
  /** Puts those before back, however far `replace` got. */
  async restore(): Promise<void> {
    if (this.#isPlaced && (await exists(this.#current))) await moveFolder(this.#current, this.#staged)
    if (await exists(this.#old)) await moveFolder(this.#old, this.#current)
  }
}

/** Removes a plugin in one step: its folder, or its file, is out of place before the first file is deleted. */
export async function removeMoved(path: string): Promise<void> {
  const moved = join(dirname(path), `${REMOVED}${randomUUID()}`)
  await moveFolder(path, moved)
  if ((await lstat(moved)).isDirectory()) await removeFolder(moved)
  else await unlink(moved)
}

/**
 * Whoever can make a file in the folder of plugins could put a plugin there as well. Throws `forbidden` if the file is
 * missing or somebody else's, and removes it. The error names `command`, which makes the file.
 */
export async function checkProof(plugins: string, id: string | undefined, command: string): Promise<void> {
  const refusal = new Refusal(
    'forbidden',
    'Plugins are installed, made and removed by the holder of the API key, and this daemon has none: set api_key, ' +
      `or use ${commandLine(command)} as the user the daemon runs as`,
  )
  if (id === undefined) throw refusal
  const path = join(plugins, `${PROOF}${id}`)
  const facts = await lstat(path).catch(() => undefined /* refused below */)
  if (!facts?.isFile() || facts.nlink !== 1 || facts.uid !== process.getuid?.()) throw refusal
  await unlink(path)
}

/** Removes what was left behind by a process that was killed. */
export async function sweep(plugins: string, inUse: ReadonlySet<string>): Promise<void> {
  await mkdir(plugins, { recursive: true, mode: 0o700 })
  for (const name of await readdir(plugins)) {
    if (![PROOF, REMOVED, STAGING].some((start) => name.startsWith(start))) continue
    const path = join(plugins, name)
    if (inUse.has(path)) continue
    // A proof is in use for a moment, also before the daemon has handled the request.
    const isOld = Date.now() - (await lstat(path)).mtimeMs > 60_000
    if (isOld || !name.startsWith(PROOF)) await removeFolder(path)
  }
}
