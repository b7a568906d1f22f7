import { randomUUID } from 'node:crypto'
import { lstat, open, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, forbidden, hasCode, splitName } from './confine.ts'
import { AS_FOLDER, holds, inFolder, pathOf } from './folder.ts'

/** How often a folder that somebody keeps filling is emptied. */
const MAX_ROUNDS = 10

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

/** Removes a folder with all it holds, however deep. Never follows a link, even one that is swapped in meanwhile. */
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
    for (let round = 1; !(await removeEmptied(root, path, round === MAX_ROUNDS)); round++);
  } finally {
    await root.close()
  }
}

/** Empties and removes a folder. `false` when somebody filled it meanwhile; in the last round that throws. */
async function removeEmptied(root: FileHandle, path: string, isLast: boolean): Promise<boolean> {
  await empty(root)
  try {
    await rmdir(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return true
    if (isLast || !hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
    return false
  }
  return true
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
