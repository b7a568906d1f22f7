import type { Result } from './figures.ts'
import { Home, median, startFloor, startSvc } from './processes.ts'
import type { Server } from './processes.ts'

const ROUNDS = 7
const CPU_MS = 500
const WAIT_MS = 20

/**
 * What the first run of the security probes costs, and what it costs somebody who asks for something else meanwhile.
 */
export async function probes(): Promise<readonly Result[]> {
  const cpu: number[] = []
  const waits: number[] = []
  const floors: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    using home = new Home()
    {
      await using svc = await startSvc(home)
      cpu.push(await cost(svc))
    }
    {
      await using svc = await startSvc(home)
      waits.push(await longestWait(svc, '/api/health', fetch(`http://127.0.0.1:${svc.port}/api/security`)))
    }
    // As many requests of a bare server, which nothing holds up but the machine.
    {
      await using floor = await startFloor('http.mjs')
      floors.push(
        await longestWait(
          floor,
          '/',
          new Promise((resolve) => {
            setTimeout(resolve, 800)
          }),
        ),
      )
    }
  }
  const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`
  return [
    {
      label: 'the first run of all probes, processor time of the daemon',
      value: ms(median(cpu)),
      floor: '',
      ratio: '',
      goal: `<= ${CPU_MS} ms`,
      reached: median(cpu) <= CPU_MS,
    },
    {
      label: 'longest wait of another request meanwhile',
      value: ms(median(waits)),
      floor: ms(median(floors)),
      ratio: `+${ms(median(waits) - median(floors))}`,
      goal: `<= +${WAIT_MS} ms`,
      reached: median(waits) - median(floors) <= WAIT_MS,
    },
  ]
}

async function cost(server: Server): Promise<number> {
  const before = server.cpuMs()
  const answer = await fetch(`http://127.0.0.1:${server.port}/api/security`)
  await answer.arrayBuffer()
  return server.cpuMs() - before
}

/**
 * Requests one after the other until `work` has ended; milliseconds of the one that took longest. The first makes the
 * connection and does not count.
 */
async function longestWait(server: Server, path: string, work: Promise<unknown>): Promise<number> {
  const until = new AbortController()
  const ended = work.finally(() => until.abort())
  let longest = 0
  for (let request = 0; !until.signal.aborted; request++) {
    const asked = performance.now()
    await (await fetch(`http://127.0.0.1:${server.port}${path}`)).arrayBuffer()
    if (request > 0) longest = Math.max(longest, performance.now() - asked)
  }
  await ended
  return longest
}
