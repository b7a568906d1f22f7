import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Home, startSvc } from './processes.ts'
import type { Server } from './processes.ts'

const MAX_WAIT_MS = 60_000
/** By then the work of a start is over, such as the probes of the security systems, and the heap has shrunk again. */
const SETTLE_MS = 10_000
const POLL_MS = 100

export interface Memory {
  readonly rss: number
  /** What lives in the heap, and outside of it. */
  readonly live: number
}

/** Collects garbage and writes what is left, when it is asked by a signal. */
const RECORDER = `
  import { writeFileSync } from 'node:fs'
  process.on('SIGUSR2', async () => {
    for (let n = 0; n < 4; n++) {
      globalThis.gc()
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const { rss, heapUsed, external } = process.memoryUsage()
    writeFileSync(process.env.MEMORY_FILE, JSON.stringify({ rss, live: heapUsed + external }))
  })`

/** What a daemon with this configuration uses, in bytes, some time after it is ready and with the garbage collected. */
export async function measureMemory(toml: string, ready: (svc: Server) => Promise<void>): Promise<Memory> {
  using home = new Home(toml)
  const [recorder, file] = [join(home.path, 'recorder.mjs'), join(home.path, 'memory.json')]
  await writeFile(recorder, RECORDER)
  await using svc = await startSvc(home, { MEMORY_FILE: file }, ['--expose-gc', `--import=${recorder}`])
  await ready(svc)
  await delay(SETTLE_MS)
  process.kill(svc.pid, 'SIGUSR2')
  for (const until = performance.now() + MAX_WAIT_MS; performance.now() < until; await delay(POLL_MS)) {
    const text = await readFile(file, 'utf8').catch(() => '')
    if (text.endsWith('}')) return JSON.parse(text) as Memory
  }
  throw new Error('the daemon did not write what it uses')
}
