import { readdir, readFile, readlink } from 'node:fs/promises'

/** The variable that marks the processes of one start. */
export const MARK = 'SVC_PROCESS'

/** Bounds the search for a process that forks faster than it is found. */
const MAX_PASSES = 20

/**
 * Kills processes that carry this mark in their environment: those that left their process group. Settles when a pass
 * over all processes finds none and none ended meanwhile, which may have left a child that was not listed yet. Linux
 * only.
 */
export async function killOrphanProcesses(mark: string): Promise<void> {
  if (process.platform !== 'linux') return
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
    let complete = true
    // One at a time: each read allocates for the largest possible environment.
    for (const pid of pids) {
      if (pid !== process.pid && !(await isUnmarked(pid, `${MARK}=${mark}`))) complete = false
    }
    if (complete) return
  }
}

/** Whether this process is none of those that are searched; one that is is killed. */
async function isUnmarked(pid: number, variable: string): Promise<boolean> {
  try {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1')
    if (!environment.includes(variable)) return environment !== '' || !(await isStarting(pid))
    process.kill(pid, 'SIGKILL')
    return false
  } catch (error) {
    // A process of another user carries no mark of ours.
    return error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'EPERM')
  }
}

/** During `exec` a process has neither environment nor arguments, but a program file; a kernel thread has no file. */
async function isStarting(pid: number): Promise<boolean> {
  if ((await readFile(`/proc/${pid}/cmdline`, 'latin1')) !== '') return false
  return await readlink(`/proc/${pid}/exe`).then(
    () => true,
    () => false,
  )
}
