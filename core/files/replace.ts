import { randomUUID } from 'node:crypto'
import { lstat, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, forbidden, hasCode, splitName } from './confine.ts'
import { inFolder } from './folder.ts'

/**
 * Replaces a confined file as a whole, durable when it settles: a reader, and a restart after a crash, finds the old
 * bytes or the new ones. Missing folders are made. Throws like `confine`. Settles with whether the file is new.
 */
export async function replaceConfined(
  root: string,
  name: string,
  content: string | Uint8Array,
): Promise<{ readonly created: boolean }> {
  await confine(root, name)
  const [folder, last] = splitName(name)
  return await inFolder(
    root,
    folder,
    async (path) => {
      const part = join(path, `.${randomUUID()}.part`)
      const target = join(path, last)
      // Nothing was there under this name, so no link is followed.
      const handle = await open(part, 'wx', 0o600)
      try {
        try {
          await handle.writeFile(content)
          await handle.sync()
        } finally {
          await handle.close()
        }
        // Looked at again: what was a file before the write may be a link now.
        const old = await lstat(target).catch((error: unknown) => {
          if (hasCode(error, 'ENOENT')) return undefined
          throw error
        })
        if (old && !(old.isFile() && old.nlink === 1)) throw forbidden(name)
        await rename(part, target)
        // The name is durable when its folder is.
        await syncFolder(path)
        return { created: old === undefined }
      } catch (error) {
        await rm(part, { force: true })
        throw error
      }
    },
    { make: true },
  )
}

/** Makes the names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  // Windows cannot open one, and needs not.
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
