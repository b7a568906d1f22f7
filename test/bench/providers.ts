import type { Result } from './figures.ts'
import { wires } from './floor/wires.ts'
import type { Wire } from './floor/wires.ts'
import { Home, freePort, load, median, root, startFloor, startServer, startSvc } from './processes.ts'
import type { Server } from './processes.ts'

const count = 10_000
const rounds = 5
const repeats = 4

/**
 * Streams through each driver, from the vendor's wire to the reader's SSE: tokens in a second of the daemon's own
 * processor time.
 */
export async function providers(): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const wire of wires) results.push(await measureOne(wire))
  return results
}

async function measureOne(wire: Wire): Promise<Result> {
  const port = await freePort()
  await using vendor = await startServer([`${root}/test/bench/floor/vendor-provider.ts`], {
    port,
    path: '/',
    env: { TOKENS: String(count), WIRE: wire.name },
    core: 1,
  })
  const address = `http://127.0.0.1:${vendor.port}`
  using home = new Home(`
default_provider = "${wire.name}"
default_model = "${wire.model}"
[providers.${wire.name}]
base_url = "${address}"
api_key = "bench-key"
`)
  await using floor = await startFloor('vendor-reemit.ts', { UPSTREAM: address, WIRE: wire.name })
  await using svc = await startSvc(home)
  const agents = (await (await fetch(`http://127.0.0.1:${svc.port}/api/agents`)).json()) as { id: string }[]
  const id = agents[0]?.id ?? ''
  const read = async (server: Server, path: string, body: string): Promise<number> => {
    // Each round begins in an empty session, or it would measure the compaction of the rounds before.
    if (server === svc) await fetch(`http://127.0.0.1:${svc.port}/api/agents/${id}/session/reset`, { method: 'POST' })
    const before = server.cpuMs()
    for (let repeat = 0; repeat < repeats; repeat++) {
      const { tokens } = await load<{ tokens: number }>('stream-load.ts', {
        port: server.port,
        streams: 1,
        kind: 'sse',
        path,
        body,
      })
      if (tokens !== count) throw new Error(`${wire.name}: ${tokens} of ${count} tokens arrived`)
    }
    return (count * repeats) / ((server.cpuMs() - before) / 1000)
  }
  const through = (): Promise<number> => read(svc, `/api/agents/${id}/message/stream`, '{"message":"go"}')
  const direct = (): Promise<number> => read(floor, '/', '{}')
  await direct()
  await through()
  const a: number[] = []
  const b: number[] = []
  for (let round = 0; round < rounds; round++) {
    a.push(await direct())
    b.push(await through())
  }
  const [value, least] = [median(b), median(a)]
  const perSecond = (rate: number): string => `${Math.round(rate).toLocaleString('en')}/s`
  return {
    label: `streamed through ${wire.name}, tokens per second of one core`,
    value: perSecond(value),
    floor: perSecond(least),
    ratio: (value / least).toFixed(2),
    goal: '>= 0.6',
    reached: value / least >= 0.6,
  }
}
