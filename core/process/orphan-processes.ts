import { readdir, readFile } from 'node:fs/promises'

/** Kills processes that carry this mark in their environment: those that left their process group. Linux only. */
export async function killOrphanProcesses(mark: string): Promise<void> {
  if (process.platform !== 'linux') return
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  // One at a time: each read allocates for the largest possible environment.
  for (const pid of pids) {
    if (pid === process.pid) continue
    try {
      if ((await readFile(`/proc/${pid}/environ`, 'latin1')).includes(`SVC_PROCESS=${mark}`))
        process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended, or belongs to another user and carries no mark of ours.
    }
  }
}
