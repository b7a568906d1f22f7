import { constants } from 'node:fs'
import { lstat, mkdir, open, realpath } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, forbidden, hasCode } from './confine.ts'

/**
 * Linux reaches what is in an open folder through its number, whatever its name leads to by then. Elsewhere a path
 * has to do.
 */
export const holds = process.platform === 'linux'
export const AS_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/**
 * Works in a folder below `root`, named as in `confine`, or in `root` itself for an empty name. Names in the path that
 * `work` gets lead to that folder alone, also when a program swaps it, or one above it, for a link meanwhile. `make`
 * makes what is missing, durable when `work` is called, and `made` says whether it did. Throws like `confine`, and as
 * the system does for what is missing.
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

export const pathOf = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`
