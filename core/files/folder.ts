import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, realpath, rename, rm, rmdir, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, forbidden, hasCode } from './confine.ts'

/** Linux reaches what is in an open folder through its number, whatever its name leads to by then. Elsewhere a path has to do. */
const holds = process.platform === 'linux'
const AS_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** How often a folder is emptied again that somebody goes on filling. */
const MOST_ROUNDS = 10

/**
 * Works in a folder below `root`, named as in `confine`, or in `root` itself for an empty name. Names in the path that `work` gets lead to that
 * folder alone, also when a program swaps it, or one above it, for a link meanwhile. `make` makes what is missing, durable when `work` is
 * called, and `made` says whether it did. Throws like `confine`, and as the system does for what is missing.
 */
export async function inFolder<T>(
  root: string,
  name: string,
  work: (path: string, made: boolean) => Promise<T>,
  options: { readonly make?: boolean } = {},
): Promise<T> {
  const path = name === '' ? await realpath(root) : await confine(root, name)
  if (!holds) {
    const made = options.make === true && (await mkdir(path, { recursive: true, mode: 0o700 })) !== undefined
    return await work(path, made)
  }
  let made = false
  let held = await open(await realpath(root), AS_FOLDER)
  try {
    for (const segment of name === '' ? [] : name.split('/')) {
      const next = await openNext(held, segment, options.make === true, name)
      await held.close()
      held = next.handle
      made ||= next.made
    }
    return await work(pathOf(held), made)
  } finally {
    await held.close()
  }
}

/** The folder a name stands in, and its last part. */
export function splitName(name: string): readonly [folder: string, last: string] {
  const at = name.lastIndexOf('/')
  return at < 0 ? ['', name] : [name.slice(0, at), name.slice(at + 1)]
}

/** Removes a plain file. `false` when there is none; throws `forbidden` for anything else. */
export async function removeConfined(root: string, name: string): Promise<boolean> {
  const [folder, last] = splitName(name)
  await confine(root, name)
  return await inFolder(root, folder, async (path) => {
    const found = await lstat(join(path, last))
    if (!found.isFile()) throw forbidden(name)
    await unlink(join(path, last))
    return true
  }).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  })
}

/** Removes a folder with all it holds, however deep, and nothing that a link in it leads to, whatever is swapped meanwhile. */
export async function removeFolder(path: string): Promise<void> {
  if (!holds) return await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 })
  let root: FileHandle
  try {
    root = await open(path, AS_FOLDER)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    if (hasCode(error, 'ENOTDIR', 'ELOOP')) return await unlink(path)
    throw error
  }
  try {
    for (let round = 1; ; round++) {
      await empty(root)
      try {
        return await rmdir(path)
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return
        if (!hasCode(error, 'ENOTEMPTY', 'EEXIST') || round >= MOST_ROUNDS) throw error
      }
    }
  } finally {
    await root.close()
  }
}

/** Folders below are moved up before they are emptied, so that depth costs neither open files nor a long path. */
async function empty(root: FileHandle): Promise<void> {
  const waiting = await clear(root, root)
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    try {
      const folder = await open(join(pathOf(root), name), AS_FOLDER)
      try {
        waiting.push(...(await clear(folder, root)))
      } finally {
        await folder.close()
      }
      await rmdir(join(pathOf(root), name))
    } catch (error) {
      // Swapped, gone or filled meanwhile: the next round sees what it is then.
      if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'ENOTEMPTY', 'EEXIST')) throw error
    }
  }
}
/** Removes what is no folder, and moves folders to `root`; the names they have there. */
async function clear(folder: FileHandle, root: FileHandle): Promise<string[]> {
  const moved: string[] = []
  for (const entry of await readdir(pathOf(folder), { withFileTypes: true, encoding: 'buffer' })) {
    const path = Buffer.concat([Buffer.from(`${pathOf(folder)}/`), entry.name])
    try {
      if (entry.isDirectory()) {
        const name = `.${randomUUID()}.gone`
        await rename(path, join(pathOf(root), name))
        moved.push(name)
      } else await unlink(path)
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'EISDIR', 'EPERM', 'ENOTDIR')) throw error
    }
  }
  return moved
}

async function openNext(
  above: FileHandle,
  segment: string,
  make: boolean,
  name: string,
): Promise<{ readonly handle: FileHandle; readonly made: boolean }> {
  const path = join(pathOf(above), segment)
  try {
    return { handle: await open(path, AS_FOLDER), made: false }
  } catch (error) {
    if (!make || !hasCode(error, 'ENOENT')) throw await explain(error, path, name)
  }
  let made = true
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    made = false
  }
  // The folder is durable when the one it stands in is.
  if (made) await above.sync()
  try {
    return { handle: await open(path, AS_FOLDER), made }
  } catch (error) {
    throw await explain(error, path, name)
  }
}
/** A plain file where a folder should be is a mistake; anything else that is none leads elsewhere. */
async function explain(error: unknown, path: string, name: string): Promise<unknown> {
  if (!hasCode(error, 'ENOTDIR', 'ELOOP')) return error
  try {
    return (await lstat(path)).isFile() ? error : forbidden(name)
  } catch {
    return forbidden(name) /* gone meanwhile */
  }
}

const pathOf = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`
