import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { confine, openConfined } from './confine.ts'

/**
 * Replaces a confined file as a whole, durable when it settles: a reader, and a restart after a crash, finds the old bytes or the new
 * ones. Missing folders are made. Throws like `confine`. Settles with whether the file is new.
 */
export async function replaceConfined(
  root: string,
  name: string,
  content: string | Uint8Array,
): Promise<{ readonly created: boolean }> {
  const path = await confine(root, name)
  const made = await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const folder = name.includes('/') ? `${name.slice(0, name.lastIndexOf('/'))}/` : ''
  const part = `${folder}.${randomUUID()}.part`
  const handle = await openConfined(root, part, 'write')
  try {
    try {
      await handle.writeFile(content)
      await handle.sync()
    } finally {
      await handle.close()
    }
    // Looked at again: what was a folder before the write may be a link now.
    const target = await confine(root, name)
    const old = await openConfined(root, name, 'read').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw error
    })
    await old?.close()
    await rename(await confine(root, part), target)
    // The name is durable when its folder is, and a new folder when the one it stands in is.
    const top = made === undefined ? dirname(path) : dirname(made)
    for (let at = dirname(path); ; at = dirname(at)) {
      await syncFolder(at)
      if (at.length <= top.length) break
    }
    return { created: old === undefined }
  } catch (error) {
    await rm(await confine(root, part), { force: true })
    throw error
  }
}

async function syncFolder(path: string): Promise<void> {
  // Windows cannot open one, and needs not.
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
