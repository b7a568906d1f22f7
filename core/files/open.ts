import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, forbidden, hasCode, splitName } from './confine.ts'
import { inFolder } from './folder.ts'

/**
 * Opens a confined file without following a link, and checks that what was opened is what was checked. `write` makes it
 * when it is missing and never truncates before the check; its folder must exist. The caller closes the handle.
 */
export async function openConfined(
  root: string,
  name: string,
  mode: 'read' | 'write',
  options: { readonly denied?: readonly string[] } = {},
): Promise<FileHandle> {
  const path = await confine(root, name, options)
  const [folder, last] = splitName(name)
  // Without O_NONBLOCK a pipe put there meanwhile would hold the reader for ever.
  const flags =
    constants.O_NOFOLLOW |
    constants.O_NONBLOCK |
    (mode === 'read' ? constants.O_RDONLY : constants.O_RDWR | constants.O_CREAT)
  let handle: FileHandle
  try {
    handle = await inFolder(root, folder, (at) => open(join(at, last), flags, 0o600))
  } catch (error) {
    if (hasCode(error, 'ELOOP', 'ENXIO')) throw forbidden(name)
    throw error
  }
  try {
    const stat = await handle.stat()
    // One without a name was replaced since: these are its old bytes.
    if (!stat.isFile() || stat.nlink > 1) throw forbidden(name)
    if (process.platform !== 'linux' && (await realpath(path)) !== path) throw forbidden(name)
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}
