import { access } from 'node:fs/promises'
import { isAbsolute, relative, sep } from 'node:path'
import type { SpawnRequest } from 'svc/sdk'

/** What every program sees, beside files in /etc. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc', '/nix/store', '/gnu/store']

/**
 * What a program may have missed that ended before it served: programs seldom say that svc refused a connection, and
 * those that do not see their own files only say that there are none.
 */
export async function explainEnd(request: SpawnRequest, connectionFailure: string | undefined): Promise<string> {
  if (connectionFailure !== undefined) return `, after a connection of it failed: ${connectionFailure}`
  const hidden = await hiddenFile(request)
  if (hidden === undefined) return ''
  return (
    `. It runs confined and does not see ${hidden}: install it for the whole system, or have the configuration file ` +
    'name its folder in read'
  )
}

/** A file that the command line names and the program does not see. */
async function hiddenFile({ trust, command, args = [], cwd, ...folders }: SpawnRequest): Promise<string | undefined> {
  if (trust === 'operator') return undefined
  const seen = [cwd, ...(folders.read ?? []), ...(folders.write ?? []), ...SYSTEM_FOLDERS]
  for (const path of [command, ...args])
    if (isAbsolute(path) && !seen.some((folder) => isInside(path, folder)) && (await exists(path))) return path
  return undefined
}
function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`)
}
const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
