import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Result } from './figures.ts'
import { Home, freePort, load, median, root, startServer, startSvc } from './processes.ts'
import type { Server } from './processes.ts'

const ROUNDS = 5
const AGENTS = 64
const HISTORY = 30
export const TURNS_BEFORE = 15
const TOOLS = [
  'system_time',
  'system_info',
  'queue_status',
  'kv_get',
  'kv_set',
  'kv_delete',
  'kv_list',
  'memory_store',
  'memory_recall',
  'memory_list',
  'file_read',
  'file_write',
  'file_list',
  'code_search',
  'agent_list',
  'agent_find',
  'workflow_list',
  'task_list',
  'cron_list',
  'goal_list',
]
const question = `${'What would you do about the third point, and why not earlier? '.repeat(3)}Answer briefly.`
export const body = JSON.stringify({ message: question })
const CPU_US = 900
const ADDED_MS = 1
const THROUGHPUT = 2
const GROWTH = 1.05
const CALL_EVERY = 3
/** Turns in one session that are timed together, once after few and once after many: all blocks have as many calls. */
const BLOCK = 7 * CALL_EVERY
/** Collections of the heap fall into one block or the other, so it takes many. */
const PAIRS = 40
const FEW = 10
const MANY = 1000
const json = { 'content-type': 'application/json' }

interface Rate {
  readonly rate: number
  readonly p50Ms: number
  readonly failures: number
  readonly all: number
}
/** One build with its agents, each with a session that is as long as its model is given messages. */
interface Subject extends AsyncDisposable {
  readonly svc: Server
  readonly agents: readonly string[]
  readonly rates: number[]
  readonly costs: number[]
}

/**
 * A turn as people have them: 30 messages of history, 20 tools, a call of a tool in every third turn, and an answer that
 * is streamed. The floor is what any server on Node has to do for it, `floor/realistic-turn.ts`. `beside` is the folder of
 * another build, measured in the same run.
 */
export async function realisticTurn(beside: string | undefined): Promise<readonly Result[]> {
  await using provider = await startFloor('instant-provider.ts', 1, {
    TOKENS: '48',
    CALL_EVERY: String(CALL_EVERY),
    CALL_TOOL: 'system_time',
  })
  await using own = await startSubject(provider, root)
  await using other = beside === undefined ? undefined : await startSubject(provider, beside)
  await using floorTurn = await startFloorTurn(provider)
  const subjects = other ? [own, other, floorTurn] : [own, floorTurn]
  for (let round = 0; round < ROUNDS; round++) for (const subject of subjects) await loadAgents(subject, 64)
  const alone = await measureAlone(provider, own, floorTurn)
  const growth = await measureGrowth(own)
  const [cost, floorCost] = [median(own.costs), median(floorTurn.costs)]
  const [rate, otherRate] = [median(own.rates), other && median(other.rates)]
  return [
    {
      label: 'realistic turn, 64 connections, processor time',
      value: us(cost),
      floor: us(floorCost),
      ratio: `${(cost / floorCost).toFixed(2)} x`,
      goal: `<= ${us(CPU_US)}`,
      reached: cost <= CPU_US,
    },
    ...(other
      ? [
          {
            label: `the same against ${beside}`,
            value: us(cost),
            floor: us(median(other.costs)),
            ratio: `${(cost / median(other.costs)).toFixed(2)} x`,
            goal: '',
          },
        ]
      : []),
    {
      label: 'the same, turns a second',
      value: perSecond(rate),
      floor: otherRate === undefined ? '' : perSecond(otherRate),
      ratio: otherRate === undefined ? '' : (rate / otherRate).toFixed(2),
      ...(otherRate === undefined
        ? { goal: '' }
        : { goal: `>= ${THROUGHPUT}`, reached: rate / otherRate >= THROUGHPUT }),
    },
    {
      label: `the same at 1 connection, added p50 (an fsync ${ms(alone.fsync)})`,
      value: ms(alone.turn),
      floor: ms(alone.direct),
      ratio: `+${ms(alone.turn - alone.direct)}`,
      goal: `<= +${ms(alone.fsync + ADDED_MS)}`,
      reached: alone.turn - alone.direct <= alone.fsync + ADDED_MS,
    },
    {
      label: 'the same by hand on plain Node',
      value: ms(alone.byHand),
      floor: ms(alone.direct),
      ratio: `+${ms(alone.byHand - alone.direct)}`,
      goal: '',
    },
    {
      label: `a turn after ${MANY} turns of its agent against one after ${FEW}`,
      value: us(growth.many),
      floor: us(growth.few),
      ratio: `${growth.ratio.toFixed(3)} x`,
      goal: `<= ${GROWTH} x`,
      reached: growth.ratio <= GROWTH,
    },
  ]
}

const us = (value: number): string => `${value.toFixed(0)} us`
const ms = (value: number): string => `${value.toFixed(2)} ms`
const perSecond = (value: number): string => `${Math.round(value)}/s`

export async function startFloor(script: string, core: number, env: NodeJS.ProcessEnv): Promise<Server> {
  return startServer([join(root, 'test/bench/floor', script)], { port: await freePort(), path: '/', env, core })
}

/** Its tools are those that the provider was given for an agent. */
async function startFloorTurn(provider: Server): Promise<Subject> {
  const asked = await (await fetch(`http://127.0.0.1:${provider.port}/last-request`)).text()
  const { tools } = JSON.parse(asked) as { readonly tools: unknown }
  const svc = await startServer([join(root, 'test/bench/floor/realistic-turn.ts')], {
    port: await freePort(),
    path: '/',
    env: { UPSTREAM: `http://127.0.0.1:${provider.port}`, TOOLS: JSON.stringify(tools) },
  })
  const agents = Array.from({ length: AGENTS }, (_, index) => `bench-${index}`)
  await Promise.all(agents.map((agent) => talk(svc, agent, TURNS_BEFORE)))
  return { svc, agents, rates: [], costs: [], [Symbol.asyncDispose]: () => svc[Symbol.asyncDispose]() }
}

async function startSubject(provider: Server, folder: string): Promise<Subject> {
  const home = new Home(`
default_provider = "openai"
default_model = "bench"
[providers.openai]
base_url = "http://127.0.0.1:${provider.port}/v1"
api_key = "bench-key"
`)
  const svc = await startSvc(home, {}, [], folder)
  const agents = await Promise.all(Array.from({ length: AGENTS }, (_, index) => spawnAgent(svc, `bench-${index}`)))
  await Promise.all(agents.map((agent) => talk(svc, agent, TURNS_BEFORE)))
  return {
    svc,
    agents,
    rates: [],
    costs: [],
    async [Symbol.asyncDispose]() {
      await svc[Symbol.asyncDispose]()
      home[Symbol.dispose]()
    },
  }
}
/** The session grows, and what the model is given of it does not. */
export async function spawnAgent(svc: Server, name: string): Promise<string> {
  const manifest_toml = `name = "${name}"
max_history_messages = ${HISTORY}
[model]
provider = "default"
model = "default"
system_prompt = "You are a helpful assistant of a small company. Be brief, be exact, and say when you do not know."
[capabilities]
tools = ${JSON.stringify(TOOLS)}
[resources]
max_tool_calls_per_minute = 1000000000
`
  const answer = await fetch(`http://127.0.0.1:${svc.port}/api/agents`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ manifest_toml }),
  })
  if (!answer.ok) throw new Error(`the agent was not made: ${await answer.text()}`)
  return ((await answer.json()) as { agent_id: string }).agent_id
}
export async function talk(svc: Server, agent: string, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    const answer = await fetch(`http://127.0.0.1:${svc.port}${streamOf(agent)}`, {
      method: 'POST',
      headers: json,
      body,
    })
    const text = await answer.text()
    if (!text.includes(DONE)) throw new Error(`a turn failed: ${text.slice(-300)}`)
  }
}
export const streamOf = (agent: string): string => `/api/agents/${agent}/message/stream`
export const DONE = '"type":"done"'

async function loadAgents(subject: Subject, connections: number): Promise<void> {
  const { svc, agents } = subject
  const before = svc.cpuMs()
  const rate = await load<Rate>('load.ts', {
    port: svc.port,
    connections,
    ms: 2000,
    method: 'POST',
    path: '/',
    paths: agents.map(streamOf),
    body,
    ends: DONE,
  })
  if (rate.failures > 0) throw new Error(`${rate.failures} turns failed`)
  subject.rates.push(rate.rate)
  subject.costs.push(((svc.cpuMs() - before) * 1000) / rate.all)
}

/**
 * What one person waits for an answer, of svc and of the same by hand, against the same request at the provider through a
 * proxy, and an fsync.
 */
async function measureAlone(
  provider: Server,
  { svc, agents: [agent = ''] }: Subject,
  { svc: floorTurn, agents: [floorAgent = ''] }: Subject,
): Promise<{ readonly turn: number; readonly byHand: number; readonly direct: number; readonly fsync: number }> {
  await using proxy = await startFloor('proxy.ts', 0, { UPSTREAM: `http://127.0.0.1:${provider.port}` })
  await talk(svc, agent, 1)
  const request = await (await fetch(`http://127.0.0.1:${provider.port}/last-request`)).text()
  const [turns, byHand, direct, syncs]: [number[], number[], number[], number[]] = [[], [], [], []]
  for (let round = 0; round < ROUNDS; round++) {
    const at = { connections: 1, ms: 1000, method: 'POST' }
    const turn = { ...at, body, ends: DONE }
    direct.push((await load<Rate>('load.ts', { ...at, port: proxy.port, path: '/', body: request })).p50Ms)
    turns.push((await load<Rate>('load.ts', { ...turn, port: svc.port, path: streamOf(agent) })).p50Ms)
    byHand.push((await load<Rate>('load.ts', { ...turn, port: floorTurn.port, path: streamOf(floorAgent) })).p50Ms)
    syncs.push(timeSync())
  }
  return { turn: median(turns), byHand: median(byHand), direct: median(direct), fsync: median(syncs) }
}
/** Writes the pages of a commit to a file and syncs it as SQLite does its write-ahead log. */
function timeSync(): number {
  using folder = new Home()
  const file = openSync(join(folder.path, 'log'), 'w')
  const pages = Buffer.alloc(8 * 4096, 1)
  const times = Array.from({ length: 200 }, () => {
    const begun = performance.now()
    writeSync(file, pages)
    fsyncSync(file)
    return performance.now() - begun
  })
  closeSync(file)
  return median(times)
}

/**
 * Processor time of a turn in a session that had many and in such that had few, in turns of `BLOCK`. Each ratio is of two
 * blocks that follow one another, so that what the machine does meanwhile is in both.
 */
async function measureGrowth({
  svc,
}: Subject): Promise<{ readonly many: number; readonly few: number; readonly ratio: number }> {
  const old = await spawnAgent(svc, 'bench-old')
  await talk(svc, old, MANY)
  const pairs: { readonly many: number; readonly few: number }[] = []
  for (let round = 0; round < PAIRS; round++) {
    const young = await spawnAgent(svc, `bench-young-${round}`)
    await talk(svc, young, FEW)
    const few = await costOfTurn(svc, young)
    pairs.push({ few, many: await costOfTurn(svc, old) })
  }
  return {
    many: median(pairs.map(({ many }) => many)),
    few: median(pairs.map(({ few }) => few)),
    ratio: median(pairs.map(({ many, few }) => many / few)),
  }
}
async function costOfTurn(svc: Server, agent: string): Promise<number> {
  const before = svc.runUs()
  await talk(svc, agent, BLOCK)
  return (svc.runUs() - before) / BLOCK
}
