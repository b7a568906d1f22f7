import { readdir, readFile } from 'node:fs/promises'

/** Ends programs that carry this mark in their environment: those that left the group of the one that started them. Linux only. */
export async function killStragglers(mark: string): Promise<void> {
  if (process.platform !== 'linux') return
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  // One after the other: each takes memory for the largest that it may be.
  for (const pid of pids) {
    if (pid === process.pid) continue
    try {
      if ((await readFile(`/proc/${pid}/environ`, 'latin1')).includes(`SVC_PROCESS=${mark}`))
        process.kill(pid, 'SIGKILL')
    } catch {
      // Gone meanwhile, or not ours: then it carries no mark of ours either.
    }
  }
}
