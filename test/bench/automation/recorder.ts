import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startSvc } from '../processes.ts'
import type { Home, Server } from '../processes.ts'

const MAX_WAIT_MS = 60_000
const POLL_MS = 50

/** What a daemon uses, and how long its event loop was held up since the last time it was asked. */
export interface Usage {
  readonly rssMb: number
  /** What lives in the heap and outside of it, after a collection. */
  readonly liveMb: number
  readonly lagP99Ms: number
  readonly lagMaxMs: number
  /** The most processor time in one such wait: the rest of it is the disk, or other programs on the machine. */
  readonly busyMaxMs: number
}

const SOURCE = `
  import { writeFileSync } from 'node:fs'
  import { monitorEventLoopDelay } from 'node:perf_hooks'
  const lag = monitorEventLoopDelay({ resolution: 1 })
  lag.enable()
  // The histogram counts the millisecond that it waits.
  const ms = (nanoseconds) => Math.max(nanoseconds / 1e6 - 1, 0)
  let [usage, busyMaxMs] = [process.cpuUsage(), 0]
  setInterval(() => {
    const { user, system } = process.cpuUsage(usage)
    usage = process.cpuUsage()
    busyMaxMs = Math.max(busyMaxMs, (user + system) / 1000)
  }, 1).unref()
  process.on('SIGUSR2', async () => {
    const [lagP99Ms, lagMaxMs, busiest] = [ms(lag.percentile(99)), ms(lag.max), busyMaxMs]
    for (let n = 0; n < 4; n++) {
      globalThis.gc()
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const { rss, heapUsed, external } = process.memoryUsage()
    const used = { rssMb: rss / 2 ** 20, liveMb: (heapUsed + external) / 2 ** 20 }
    Object.assign(used, { lagP99Ms, lagMaxMs, busyMaxMs: busiest })
    lag.reset()
    busyMaxMs = 0
    writeFileSync(process.env.USAGE_FILE, JSON.stringify(used))
  })`

/** A daemon that says what it uses. */
export async function startRecorded(home: Home): Promise<Server & { usage(): Promise<Usage> }> {
  const [recorder, file] = [join(home.path, 'recorder.mjs'), join(home.path, 'usage.json')]
  await writeFile(recorder, SOURCE)
  const svc = await startSvc(home, { USAGE_FILE: file }, ['--expose-gc', `--import=${recorder}`])
  return {
    ...svc,
    async usage() {
      await rm(file, { force: true })
      try {
        process.kill(svc.pid, 'SIGUSR2')
      } catch (cause) {
        throw new Error(`the daemon is gone: ${svc.output().slice(-300)}`, { cause })
      }
      for (const until = performance.now() + MAX_WAIT_MS; performance.now() < until; await delay(POLL_MS)) {
        const text = await readFile(file, 'utf8').catch(() => '')
        if (text.endsWith('}')) return JSON.parse(text) as Usage
      }
      throw new Error('the daemon did not write what it uses')
    },
  }
}

/** A request whose answer is JSON. Throws what the daemon says. */
export async function request<T>(port: number, method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`)
  return JSON.parse(text) as T
}
export const spawnAgents = (port: number, count: number): Promise<readonly string[]> =>
  Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const made = await request<{ agent_id: string }>(port, 'POST', '/api/agents', {
        manifest_toml: `name = "bench-${index}"\n`,
      })
      return made.agent_id
    }),
  )
/** Does the work for each number below `count`, as many at once as `width`. */
export async function inParallel(
  count: number,
  width: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: width }, lane))
}
