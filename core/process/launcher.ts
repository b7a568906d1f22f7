import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { safePath } from './environment.ts'

/** Puts words before a program that take rights away from it. */
export interface Launcher {
  readonly isolation: 'namespace' | 'group'
  words(program: readonly string[], options: { readonly timeoutMs: number; readonly network: boolean }): readonly string[]
}

/** A process space of its own: it sees no other process, so it cannot read the daemon's environment, and all of it ends with its first process. */
const spaces = ['--user', '--map-current-user', '--pid', '--fork', '--mount-proc', '--kill-child']
/** What is tried to find out whether it works here. */
export const probe: readonly string[] = [...spaces, '--net', '--', 'true']

/**
 * What this system offers of: no new privileges and an end with the daemon (setpriv), a process space (unshare), limits (prlimit).
 * `works` tries the process space, which many containers forbid.
 */
export async function launcher(works: (unshare: string) => Promise<boolean>): Promise<Launcher> {
  if (process.platform !== 'linux') return { isolation: 'group', words: (program) => program }
  const [setpriv, unshare, prlimit] = await Promise.all(['setpriv', 'unshare', 'prlimit'].map(find))
  const isolated = unshare !== undefined && await works(unshare)
  return {
    isolation: isolated ? 'namespace' : 'group',
    words: (program, { timeoutMs, network }) => [
      ...(setpriv === undefined ? [] : [setpriv, '--no-new-privs', '--pdeathsig', 'KILL', '--']),
      // The first process of a space does not hear a polite signal, so that part is played by a second unshare, which only waits.
      ...(isolated ? [unshare, ...spaces, ...(network ? [] : ['--net']), '--', unshare, '--fork', '--'] : []),
      ...(prlimit === undefined ? [] : [prlimit, ...limits(timeoutMs), '--']),
      ...program,
    ],
  }
}

/** Generous for work, too small for an accident: address space is what it may reserve, data what it may use. */
function limits(timeoutMs: number): readonly string[] {
  const gib = 1024 ** 3
  return ['--core=0', `--cpu=${Math.ceil(timeoutMs / 1000) + 5}`, `--as=${64 * gib}`, `--data=${4 * gib}`, '--nproc=4096', '--nofile=1024', `--fsize=${gib}`]
}

async function find(name: string): Promise<string | undefined> {
  for (const folder of safePath) {
    const path = join(folder, name)
    try {
      await access(path, constants.X_OK)
      return path
    } catch {
      // Not here: the next folder may have it.
    }
  }
  return undefined
}
