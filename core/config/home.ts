import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

/** The home of the daemon: the flag, `SVC_HOME`, or `~/.svc`. Absolute. */
export function findHome(
  flag: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
): string {
  const named = flag?.trim() || env['SVC_HOME']?.trim()
  if (!named) return join(env['HOME'] || homedir(), '.svc')
  return resolve(cwd, named.replace(/^~(?=$|\/)/, env['HOME'] || homedir()))
}
