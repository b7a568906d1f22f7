import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { prepareHome, Writer } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/**
 * No 2xx of a write leaves before its rows are synced: read off the system calls, because a killed process cannot
 * show it.
 */
export async function fsync({ rounds, built }: FaultOptions): Promise<FaultReport> {
  using home = await prepareHome({ built })
  const trace = join(home.path, 'calls.txt')
  const writer = new Writer(home.agent)
  const problems: string[] = []
  {
    await using daemon = await home.start({
      under: [
        'strace',
        '-f',
        '-qq',
        '-yy',
        '-s',
        '24',
        '-o',
        trace,
        '-e',
        'trace=pwrite64,fdatasync,fsync,write,writev,sendto,sendmsg',
      ],
    })
    for (let write = 0; write < rounds; write++) {
      const answer = await writer.write(daemon)
      if (answer?.status !== 200) problems.push(`write ${write} answered ${answer?.status}`)
    }
    await daemon.stop()
  }
  let unsynced = false
  let answers = 0
  let syncsSeen = 0
  for (const line of readFileSync(trace, 'utf8').split('\n')) {
    const done = / = -?\d/.test(line)
    if (/pwrite64\(\d+<[^>]*svc\.db-wal>/.test(line)) unsynced = true
    // A sync that another thread interrupts in the listing is over when it resumes.
    else if (/f(?:data)?sync\(\d+<[^>]*svc\.db-wal>/.test(line) && done) {
      unsynced = false
      syncsSeen++
    } else if (/<\.\.\. f(?:data)?sync resumed>/.test(line)) {
      unsynced = false
      syncsSeen++
    } else if (/TCP.*HTTP\/1\.1 200/.test(line)) {
      answers++
      if (unsynced) problems.push(`an answer left before its sync: ${line.slice(0, 160)}`)
    }
  }
  if (answers < rounds) problems.push(`only ${answers} answers were seen in the trace of ${rounds} writes`)
  return { writes: rounds, answers, syncs: syncsSeen, problems: problems.slice(0, 5) }
}
