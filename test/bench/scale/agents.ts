import type { Result } from '../figures.ts'
import { Home, median, startSvc, syncedWrites } from '../processes.ts'
import type { Server } from '../processes.ts'

const json = { 'content-type': 'application/json' }
const count = 10_000
const lanes = 64

const at = (svc: Server, path: string): string => `http://127.0.0.1:${svc.port}${path}`
async function timed<T>(work: () => Promise<T>): Promise<readonly [ms: number, value: T]> {
  const begun = performance.now()
  const value = await work()
  return [performance.now() - begun, value]
}

/** One of the agents, made over the API. Returns its id. */
async function spawnOne(svc: Server, index: number): Promise<string> {
  const manifest_toml = `name = "agent-${index}"\ndescription = "One of many"\ntags = ["bench", "t${index % 10}"]\n[model]\nprovider = "builtin"\nmodel = "default"\nsystem_prompt = "You are number ${index} and answer in one sentence."\n[capabilities]\ntools = ["kv_*", "system_time"]\n`
  const answer = await fetch(at(svc, '/api/agents'), {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ manifest_toml }),
  })
  if (answer.status !== 201) throw new Error(`spawn answered ${answer.status}: ${await answer.text()}`)
  return ((await answer.json()) as { agent_id: string }).agent_id
}
async function spawnAll(svc: Server): Promise<string> {
  let next = 0
  let last = ''
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (let index = next++; index < count; index = next++) last = await spawnOne(svc, index)
    }),
  )
  return last
}
async function list(svc: Server): Promise<number> {
  const agents = (await (await fetch(at(svc, '/api/agents'))).json()) as unknown[]
  return agents.length
}
async function message(svc: Server, id: string): Promise<void> {
  const answer = await fetch(at(svc, `/api/agents/${id}/message`), {
    method: 'POST',
    headers: json,
    body: '{"message":"hello"}',
  })
  if (!answer.ok) throw new Error(`message answered ${answer.status}: ${await answer.text()}`)
  await answer.text()
}
/** Sockets that each get the list of all agents every five seconds. Settles when each has got it twice. */
async function listen(svc: Server, id: string, sockets: number): Promise<void> {
  await Promise.all(
    Array.from(
      { length: sockets },
      () =>
        new Promise<void>((resolve, reject) => {
          const socket = new WebSocket(`ws://127.0.0.1:${svc.port}/api/agents/${id}/ws`)
          let lists = 0
          socket.addEventListener('message', ({ data }) => {
            if (!String(data).startsWith('{"type":"agents_updated"') || ++lists < 2) return
            socket.close()
            resolve()
          })
          socket.addEventListener('error', () => reject(new Error('the socket failed')))
        }),
    ),
  )
}

/** 10,000 agents in one daemon: making them, listing them, starting with them, and what they cost in memory. */
export async function agents(): Promise<readonly Result[]> {
  using home = new Home()
  const limit = (label: string, value: number, goal: number, unit: string): Result => ({
    label: `10,000 agents: ${label}`,
    value: `${value.toFixed(0)} ${unit}`,
    floor: '-',
    ratio: '-',
    goal: `<= ${goal} ${unit}`,
    reached: value <= goal,
  })
  const results: Result[] = []
  let last = ''
  {
    await using svc = await startSvc(home)
    const [createMs, id] = await timed(() => spawnAll(svc))
    last = id
    results.push(limit('made, 64 at a time', createMs / 1000, 60, 's'))
  }
  await using svc = await startSvc(home)
  results.push(limit('start', svc.startedMs, 5000, 'ms'))
  results.push(limit('memory (RSS) after the start', svc.rssMb(), 500, 'MB'))
  const lists: number[] = []
  for (let round = 0; round < 15; round++) {
    const [listMs, found] = await timed(() => list(svc))
    if (found < count) throw new Error(`${found} agents are listed`)
    lists.push(listMs)
  }
  results.push(
    limit(`list, p50 of ${lists.length} (the slowest ${Math.max(...lists).toFixed(0)} ms)`, median(lists), 300, 'ms'),
  )
  const messages: number[] = []
  for (let round = 0; round < 20; round++) messages.push((await timed(() => message(svc, last)))[0])
  results.push(limit('message to one of them, p50', median(messages), 20, 'ms'))
  await listen(svc, last, 100)
  results.push(limit('memory (RSS) after lists, messages and 100 sockets', svc.rssMb(), 500, 'MB'))
  return results
}

const FEW = 1000
/** By then the work of a start is over, such as the probes of the security systems. */
const SETTLE_MS = 12_000

/** 1,000 agents that are made one after the other, and what they cost the next start. */
export async function fewAgents(): Promise<readonly Result[]> {
  using home = new Home()
  let madeMs = 0
  let cpuMs = 0
  let syncMs = 0
  {
    await using svc = await startSvc(home)
    // In turns, so that a busy disk disturbs both.
    const part = FEW / 10
    for (let from = 0; from < FEW; from += part) {
      const before = svc.cpuMs()
      const [ms] = await timed(async () => {
        for (let index = from; index < from + part; index++) await spawnOne(svc, index)
      })
      madeMs += ms
      cpuMs += svc.cpuMs() - before
      syncMs += syncedWrites(home.path, part)
    }
  }
  using bare = new Home()
  await using empty = await startSvc(bare)
  await using svc = await startSvc(home)
  await new Promise((resolve) => {
    setTimeout(resolve, SETTLE_MS)
  })
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`
  const mb = (value: number): string => `${value.toFixed(0)} MB`
  return [
    {
      label: `1,000 agents, one after the other (${((cpuMs * 1000) / FEW).toFixed(0)} us of processor each), against 1,000 synced writes`,
      value: seconds(madeMs),
      floor: seconds(syncMs),
      ratio: `${(madeMs / syncMs).toFixed(1)} x`,
      goal: '<= 3 s',
      reached: madeMs <= 3000,
    },
    {
      label: `1,000 agents: memory (RSS) some time after a start, against one without them`,
      value: mb(svc.rssMb()),
      floor: mb(empty.rssMb()),
      ratio: `+${mb(svc.rssMb() - empty.rssMb())}`,
      goal: '<= 110 MB',
      reached: svc.rssMb() <= 110,
    },
    {
      label: '1,000 agents: of it anonymous',
      value: mb(svc.privateMb()),
      floor: mb(empty.privateMb()),
      ratio: `+${mb(svc.privateMb() - empty.privateMb())}`,
      goal: '<= 40 MB',
      reached: svc.privateMb() <= 40,
    },
  ]
}
