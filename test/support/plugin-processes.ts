import { readdir, readFile } from 'node:fs/promises'

/** Processes that may read the plugins of this home, with those that launched them. */
export async function processesOf(home: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')))
  return lines.filter((line) => line.includes(`--allow-fs-read=${home}`))
}
