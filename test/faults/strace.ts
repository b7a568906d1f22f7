import { execFileSync } from 'node:child_process'

/** Whether system calls can be made to fail here: needs the Debian package `strace` and the right to trace. */
export const canInject = ((): boolean => {
  try {
    execFileSync('strace', ['-qq', '-e', 'trace=none', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

/** The calls that put bytes and names on disk. */
export const syncs = 'fdatasync,fsync,rename,renameat,renameat2'

/**
 * Runs a program and lets one of these calls fail or kill it. `when` is strace's: `5` the fifth, `5+` each from the
 * fifth on, per thread.
 */
export function injecting(calls: string, effect: string, when: string): readonly string[] {
  return [
    'strace',
    '-f',
    '-qq',
    '-o',
    '/dev/null',
    '-e',
    `trace=${calls}`,
    '-e',
    `inject=${calls}:${effect}:when=${when}`,
  ]
}
