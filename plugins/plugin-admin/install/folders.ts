import { randomUUID } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { lstat, mkdir, open, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { entryPath, removeFolder } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'

/** Hidden folders beside the plugins, which nothing loads. */
export const OLD = '.old-plugin-'
export const STAGING = '.staging-'
export const REMOVED = '.removed-'
export const PROOF = '.proof-'
/** Files that say which change of a plugin is under way in this home. */
const CHANGE = '.change-'
/** Dependencies of a plugin while others are put in their place. */
export const OLD_MODULES = '.old-modules-'
const MODULES = 'node_modules'

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
    entries.filter(({ name }) => name !== MODULES),
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
  readonly target: string
  readonly #old: string
  constructor(plugins: string, name: string) {
    this.target = entryPath(plugins, name)
    this.#old = join(plugins, `${OLD}${name}`)
  }

  async replace(staged: string): Promise<void> {
    if (await exists(this.target)) await moveFolder(this.target, this.#old)
    await moveFolder(staged, this.target)
  }
  /** Whether `replace` ended. `hadFolder`: there was one before it. */
  async isPlaced(hadFolder: boolean): Promise<boolean> {
    return (await exists(this.target)) && (!hadFolder || (await exists(this.#old)))
  }
  /** Puts the folder before back, however far `replace` or this got; without one, there is none afterwards. */
  async restore(hadFolder: boolean): Promise<void> {
    // It was never moved, or it is back.
    if (hadFolder && !(await exists(this.#old))) return
    if (await exists(this.target)) await removeMoved(this.target)
    if (hadFolder) await moveFolder(this.#old, this.target)
  }
  async drop(): Promise<void> {
    await removeFolder(this.#old)
  }
}

/** Puts dependencies in place of those of a plugin, which are kept under a hidden name until `drop` or `restore`. */
export class ModulesSwap {
  readonly #current: string
  readonly #old: string
  #isPlaced = false
  constructor(plugins: string, name: string) {
    this.#current = join(entryPath(plugins, name), MODULES)
    this.#old = join(plugins, `${OLD_MODULES}${name}`)
  }

  async replace(staging: string): Promise<void> {
    const staged = join(staging, MODULES)
    if (await exists(this.#current)) await moveFolder(this.#current, this.#old)
    if (!(await exists(staged))) return
    this.#isPlaced = true
    await moveFolder(staged, this.#current)
  }
  /** Puts those before back, however far `replace` or this got. */
  async restore(): Promise<void> {
    const isKept = await exists(this.#old)
    if ((isKept || this.#isPlaced) && (await exists(this.#current)))
      await removeMoved(this.#current, dirname(this.#old))
    if (isKept) await moveFolder(this.#old, this.#current)
  }
  /** The dependencies before are out of place in one step: a part of them is never put back. */
  async drop(): Promise<void> {
    if (await exists(this.#old)) await removeMoved(this.#old)
  }
}

/** Removes a plugin in one step: its folder, or its file, is out of place before the first file is deleted. */
export async function removeMoved(path: string, plugins = dirname(path)): Promise<void> {
  const moved = join(plugins, `${REMOVED}${randomUUID()}`)
  await moveFolder(path, moved)
  if ((await lstat(moved)).isDirectory()) await removeFolder(moved)
  else await unlink(moved)
}

/**
 * Notes down in the home what is under way, so that a row alone changes nothing there. Durable when it settles; one that
 * is cut off is of a change whose row is not written yet.
 */
export async function noteChange(plugins: string, name: string, digest: string): Promise<void> {
  await writeFile(entryPath(plugins, CHANGE + name), digest, { mode: 0o600, flush: true })
}
export async function isNoted(plugins: string, name: string, digest: string): Promise<boolean> {
  const noted = await readFile(entryPath(plugins, CHANGE + name), 'utf8').catch(() => '' /* nothing is */)
  return noted === digest
}
export async function dropNote(plugins: string, name: string): Promise<void> {
  await rm(entryPath(plugins, CHANGE + name), { force: true })
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

/**
 * Removes what was left behind by a process that was killed. `keep` are plugins whose folder before is still needed.
 */
export async function sweep(plugins: string, inUse: ReadonlySet<string>, keep: ReadonlySet<string>): Promise<void> {
  await mkdir(plugins, { recursive: true, mode: 0o700 })
  for (const name of await readdir(plugins)) {
    const isOld = [OLD, OLD_MODULES, CHANGE].some(
      (start) => name.startsWith(start) && !keep.has(name.slice(start.length)),
    )
    if (!isOld && ![PROOF, REMOVED, STAGING].some((start) => name.startsWith(start))) continue
    const path = join(plugins, name)
    if (inUse.has(path)) continue
    // A proof is in use for a moment, also before the daemon has handled the request.
    const isStale = !name.startsWith(PROOF) || Date.now() - (await lstat(path)).mtimeMs > 60_000
    if (isStale) await removeFolder(path)
  }
}

/** Plugins whose dependencies were being replaced. */
export async function unfinishedModules(plugins: string): Promise<readonly string[]> {
  const names = await readdir(plugins).catch(() => [] /* no plugin was ever installed */)
  return names.filter((name) => name.startsWith(OLD_MODULES)).map((name) => name.slice(OLD_MODULES.length))
}

/** The content of all files is on disk when it settles. */
export async function syncFiles(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    if (!entry.isFile()) continue
    await using handle = await open(join(entry.parentPath, entry.name), 'r')
    await handle.sync()
  }
}
