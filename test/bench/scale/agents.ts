import type { Result } from '../figures.ts'
import { Home, median, startSvc } from '../processes.ts'
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

async function spawnAll(svc: Server): Promise<string> {
  let next = 0
  let last = ''
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (let index = next++; index < count; index = next++) {
        const manifest_toml = `name = "agent-${index}"\ndescription = "One of many"\ntags = ["bench", "t${index % 10}"]\n[model]\nprovider = "builtin"\nmodel = "default"\nsystem_prompt = "You are number ${index} and answer in one sentence."\n[capabilities]\ntools = ["kv_*", "system_time"]\n`
        const answer = await fetch(at(svc, '/api/agents'), {
          method: 'POST',
          headers: json,
          body: JSON.stringify({ manifest_toml }),
        })
        if (answer.status !== 201) throw new Error(`spawn answered ${answer.status}: ${await answer.text()}`)
        last = ((await answer.json()) as { agent_id: string }).agent_id
      }
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
