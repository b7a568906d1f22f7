import { open, readdir, readFile, readlink } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'

/** The variable that marks the processes of one start. */
export const MARK = 'SVC_PROCESS'

/** Bounds the search for a process that forks faster than it is found. */
const MAX_PASSES = 200
/** Between two passes at most: what was killed takes a moment to be gone. */
const MAX_PAUSE_MS = 10
/** An environment is read in pieces of this size. */
const PIECE_BYTES = 16_384

/**
 * Kills processes that carry this mark in their environment: those that left their process group. Settles when a pass
 * over all processes finds none and none ended before it was read, which may have left a child that was not listed yet.
 * Linux only.
 */
export async function killOrphanProcesses(mark: string): Promise<void> {
  if (process.platform !== 'linux') return
  const variable = Buffer.from(`${MARK}=${mark}`)
  // One for all: `readFile` takes a fresh one of 64 KiB for each of the processes, which sets off one collection after
  // the other.
  const buffer = Buffer.allocUnsafeSlow(variable.length + PIECE_BYTES)
  // Only children of the marked are marked: what was read once is not read again, and may end meanwhile.
  let unmarked: ReadonlySet<number> = new Set([process.pid])
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
    // The number of one that is gone may be given to another.
    const found = new Set(pids.filter((pid) => unmarked.has(pid)))
    let complete = true
    // One at a time: they share the buffer.
    for (const pid of pids) {
      if (found.has(pid)) continue
      const state = await stateOf(pid, variable, buffer)
      if (state === 'unmarked' || state === 'ended') found.add(pid)
      if (state === 'unknown' || state === 'ended') complete = false
    }
    if (complete) return
    unmarked = found
    await setTimeout(Math.min(pass, MAX_PAUSE_MS))
  }
}

/**
 * Whether this process is one of those that are searched, which is killed and looked at again; `unreadable` is none of
 * them as it is now.
 */
async function stateOf(
  pid: number,
  variable: Buffer,
  buffer: Buffer,
): Promise<'unmarked' | 'unreadable' | 'ended' | 'unknown'> {
  try {
    const found = await search(`/proc/${pid}/environ`, variable, buffer)
    if (found === 'absent') return 'unmarked'
    if (found === 'empty') return (await isStarting(pid)) ? 'unknown' : 'unreadable'
    process.kill(pid, 'SIGKILL')
    return 'unknown'
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    // Without memory: its children are listed in the next pass. Threads of the kernel have none either.
    if (code === 'ESRCH') return 'ended'
    // A process of another user carries no mark of ours.
    return code === 'EACCES' || code === 'EPERM' ? 'unreadable' : 'unknown'
  }
}

/** Whether a file has these bytes, read into a buffer that is longer than they are. */
async function search(path: string, bytes: Buffer, buffer: Buffer): Promise<'present' | 'absent' | 'empty'> {
  await using file = await open(path)
  let isEmpty = true
  // What could be the beginning of them stays in the buffer for the next piece.
  for (let kept = 0; ;) {
    const { bytesRead } = await file.read(buffer, kept, buffer.length - kept, null)
    if (bytesRead === 0) return isEmpty ? 'empty' : 'absent'
    isEmpty = false
    const filled = kept + bytesRead
    if (buffer.subarray(0, filled).includes(bytes)) return 'present'
    kept = Math.min(filled, bytes.length - 1)
    buffer.copyWithin(0, filled - kept, filled)
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
