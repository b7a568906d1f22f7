import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The name of a proxy's folder holds the process id of its daemon. */
const pattern = /^svc-network-(\d+)-/

/** The folder of one proxy's socket, which only this user can enter. */
export function createFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), `svc-network-${process.pid}-`))
}

/** Removes the folders of daemons that were killed and could not do it. */
export async function removeStaleFolders(): Promise<void> {
  const stale = (await readdir(tmpdir())).filter((name) => {
    const pid = Number(pattern.exec(name)?.[1] ?? 0)
    return pid !== 0 && !isRunning(pid)
  })
  for (const name of stale) {
    try {
      await rm(join(tmpdir(), name), { recursive: true, force: true })
    } catch {
      // It belongs to another user, whose daemon removes it.
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process belongs to another user.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
}
