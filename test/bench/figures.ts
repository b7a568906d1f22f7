import { Home, load, median, startFloor, startSvc } from './processes.ts'
import type { Server } from './processes.ts'
import { schedules } from './automation/schedules.ts'
import { workflows } from './automation/workflows.ts'
import { auditVerify } from './audit-verify.ts'
import { cluster } from './cluster/cluster.ts'
import { clusterModel } from './cluster/cluster-model.ts'
import { channelFleet } from './channel-fleet.ts'
import { channelIdle } from './channel-idle.ts'
import { channelLoad } from './channel-load.ts'
import { channelMessages } from './channel-messages.ts'
import { channelStart } from './channel-start.ts'
import { hostile } from './hostile.ts'
import { sessionLength } from './session-length.ts'
import { mcpCall } from './mcp-call.ts'
import { mcpIdle, mcpTurn } from './mcp-servers.ts'
import { models } from './models.ts'
import { probes } from './probes.ts'
import { providerCount } from './provider-count.ts'
import { providers } from './providers.ts'
import { realisticTurn } from './realistic-turn.ts'
import { reload } from './reload.ts'
import { skills } from './skills.ts'
import { agents, fewAgents } from './scale/agents.ts'
import { soak } from './scale/soak.ts'
import { streamsAtOnce } from './scale/streams.ts'

export interface Result {
  readonly label: string
  readonly value: string
  readonly floor: string
  readonly ratio: string
  readonly goal: string
  /** `undefined`: there is nothing to reach. */ readonly reached?: boolean
}
/**
 * `minutes` is how long a figure that watches something over time is to watch; `beside` the folder of another build to
 * compare with.
 */
export interface Figure {
  readonly name: string
  measure(minutes?: number, beside?: string): Promise<readonly Result[]>
}
interface Rate {
  readonly rate: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failures: number
  readonly count: number
  readonly all: number
}
interface Tokens {
  readonly tokens: number
  readonly ms: number
}

const rounds = 5
const ms = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)} ms`
const perSecond = (value: number): string => `${Math.round(value).toLocaleString('en')}/s`

function atMost(label: string, value: number, floor: number, limit: number, show: (value: number) => string): Result {
  return {
    label,
    value: show(value),
    floor: show(floor),
    ratio: `${(value / floor).toFixed(2)} x`,
    goal: `<= ${limit} x`,
    reached: value / floor <= limit,
  }
}
function atLeast(label: string, value: number, floor: number, limit: number, show: (value: number) => string): Result {
  return {
    label,
    value: show(value),
    floor: show(floor),
    ratio: (value / floor).toFixed(2),
    goal: `>= ${limit}`,
    reached: value / floor >= limit,
  }
}
/** Throughput of one server, and what a request cost it in processor time, which a busy machine disturbs less. */
class Meter {
  readonly rates: number[] = []
  readonly costs: number[] = []
  readonly #server: Server
  constructor(server: Server) {
    this.#server = server
  }

  async load(options: object): Promise<Rate> {
    const before = this.#server.cpuMs()
    const rate = await load<Rate>('load.ts', { port: this.#server.port, ...options })
    if (rate.failures > 0) throw new Error(`${rate.failures} requests failed`)
    this.rates.push(rate.rate)
    this.costs.push(((this.#server.cpuMs() - before) * 1000) / rate.all)
    return rate
  }
}
/** Compares the rates; the label says what a request costs in microseconds of processor time. */
function throughput(label: string, svc: Meter, floor: Meter, limit: number): Result {
  return atLeast(
    `${label} (${median(svc.costs).toFixed(0)} against ${median(floor.costs).toFixed(0)} us of processor)`,
    median(svc.rates),
    median(floor.rates),
    limit,
    perSecond,
  )
}
/** The same with nothing to reach. */
function beside(label: string, one: Meter, other: Meter): Result {
  const { reached: _, ...rest } = throughput(label, one, other, 1)
  return { ...rest, goal: '' }
}

const providerConfig = (provider: Server): string => `
default_provider = "openai"
default_model = "bench"
[providers.openai]
base_url = "http://127.0.0.1:${provider.port}/v1"
api_key = "bench-key"
`
async function firstAgent(svc: Server): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${svc.port}/api/agents`)
  const agents = (await answer.json()) as { id: string }[]
  const id = agents[0]?.id
  if (!id) throw new Error('no agent')
  return id
}
async function spawnAgents(svc: Server, count: number): Promise<string[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const manifest_toml = `name = "bench-${index}"\n[model]\nprovider = "default"\nmodel = "default"\n`
      const answer = await fetch(`http://127.0.0.1:${svc.port}/api/agents`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ manifest_toml }),
      })
      return ((await answer.json()) as { agent_id: string }).agent_id
    }),
  )
}

async function start(): Promise<readonly Result[]> {
  const floors: number[] = []
  const first: number[] = []
  const second: number[] = []
  const floorRss: number[] = []
  const rss: number[] = []
  const privateMb: number[] = []
  const probed: number[] = []
  for (let round = 0; round < rounds + 2; round++) {
    {
      await using floor = await startFloor('http.mjs')
      floors.push(floor.startedMs)
      floorRss.push(await settledRss(floor))
    }
    using home = new Home()
    {
      await using svc = await startSvc(home)
      first.push(svc.startedMs)
    }
    {
      await using svc = await startSvc(home)
      second.push(svc.startedMs)
      rss.push(await settledRss(svc))
      privateMb.push(svc.privateMb())
      probed.push(await probedRss(svc))
    }
  }
  const mb = (value: number): string => `${value.toFixed(0)} MB`
  return [
    atMost('second cold start', median(second), median(floors), 3, ms),
    atMost('first start, empty home', median(first), median(floors), 4, ms),
    {
      ...atMost('idle memory (RSS)', median(rss), median(floorRss), 1.6, mb),
      label: `idle memory (RSS; ${mb(median(privateMb))} private)`,
    },
    atMost('the same once the security probes have run', median(probed), median(floorRss), 1.6, mb),
  ]
}
/** The answer waits for the first run of the probes. */
async function probedRss(server: Server): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${server.port}/api/security`)
  if (!answer.ok) throw new Error(`the security probes: ${answer.status}`)
  await answer.arrayBuffer()
  return settledRss(server)
}
async function settledRss(server: Server): Promise<number> {
  await new Promise((resolve) => {
    setTimeout(resolve, 1500)
  })
  return server.rssMb()
}

async function health(): Promise<readonly Result[]> {
  using home = new Home()
  await using floor = await startFloor('http.mjs')
  await using svc = await startSvc(home)
  const [a, b] = [new Meter(floor), new Meter(svc)]
  for (let round = 0; round < rounds; round++) {
    await a.load({ connections: 64, ms: 1500, method: 'GET', path: '/' })
    await b.load({ connections: 64, ms: 1500, method: 'GET', path: '/api/health' })
  }
  return [throughput('GET /api/health', b, a, 0.55)]
}

async function write(): Promise<readonly Result[]> {
  using home = new Home()
  await using floor = await startFloor('http.mjs')
  await using svc = await startSvc(home)
  const id = await firstAgent(svc)
  const body = '{"value":{"greeting":"hello","count":1}}'
  const [a, b] = [new Meter(floor), new Meter(svc)]
  for (let round = 0; round < rounds; round++) {
    await a.load({ connections: 64, ms: 1500, method: 'POST', path: '/', body })
    await b.load({ connections: 64, ms: 1500, method: 'PUT', path: `/api/memory/agents/${id}/kv/bench`, body })
  }
  return [throughput('durable write, 64 connections', b, a, 0.2)]
}

async function turn(): Promise<readonly Result[]> {
  await using provider = await startFloorOn(1, 'instant-provider.ts', { TOKENS: '4' })
  using home = new Home(providerConfig(provider))
  await using floor = await startFloor('proxy.ts', { UPSTREAM: `http://127.0.0.1:${provider.port}` })
  await using bare = await startFloor('durable-turn.ts', { UPSTREAM: `http://127.0.0.1:${provider.port}` })
  await using svc = await startSvc(home)
  // One session takes one turn at a time: 64 connections talk to 64 agents, as 64 people would.
  const ids = await spawnAgents(svc, 64)
  const body = '{"message":"hello there"}'
  const proxied = '{"model":"bench","stream":true,"messages":[{"role":"user","content":"hello there"}]}'
  const paths = ids.map((id) => `/api/agents/${id}/message`)
  const [a, b, c] = [new Meter(floor), new Meter(svc), new Meter(bare)]
  const single: number[] = []
  const direct: number[] = []
  for (let round = 0; round < rounds; round++) {
    await a.load({ connections: 64, ms: 1500, method: 'POST', path: '/', body: proxied })
    await c.load({ connections: 64, ms: 1500, method: 'POST', path: '/', paths, body })
    await b.load({ connections: 64, ms: 1500, method: 'POST', path: '/', paths, body })
  }
  for (let round = 0; round < rounds; round++) {
    const at = { connections: 1, ms: 1000, method: 'POST' }
    direct.push((await load<Rate>('load.ts', { ...at, port: floor.port, path: '/', body: proxied })).p50Ms)
    single.push(
      (await load<Rate>('load.ts', { ...at, port: svc.port, path: `/api/agents/${ids[0]}/message`, body })).p50Ms,
    )
  }
  const added = median(single) - median(direct)
  return [
    throughput('chat turn, 64 connections', b, a, 0.3),
    // How far that can go: the same rows and the same two calls, written by hand with nothing around them.
    beside('the most of it: a bare durable turn', c, a),
    beside('chat turn against the bare one', b, c),
    {
      label: 'chat turn, added p50 at 1 connection',
      value: ms(median(single)),
      floor: ms(median(direct)),
      ratio: `+${ms(added)}`,
      goal: '<= 2 ms',
      reached: added <= 2,
    },
  ]
}
async function startFloorOn(core: number, script: string, env: NodeJS.ProcessEnv): Promise<Server> {
  const { freePort, root, startServer } = await import('./processes.ts')
  return startServer([`${root}/test/bench/floor/${script}`], { port: await freePort(), path: '/', env, core })
}

async function stream(): Promise<readonly Result[]> {
  const count = 10_000
  await using provider = await startFloorOn(1, 'instant-provider.ts', { TOKENS: String(count) })
  using home = new Home(providerConfig(provider))
  await using floor = await startFloor('reemit.ts', { UPSTREAM: `http://127.0.0.1:${provider.port}` })
  await using svc = await startSvc(home)
  const id = await firstAgent(svc)
  const results: Result[] = []
  for (const kind of ['sse', 'websocket'] as const) {
    const a: number[] = []
    const b: number[] = []
    // Tokens per second of the server's own processor time, so that the reader's speed does not matter.
    const measure = async (server: Server, path: string, body: string): Promise<number> => {
      // Each round begins in an empty session, or it would measure the compaction of the rounds before.
      if (server === svc) await fetch(`http://127.0.0.1:${svc.port}/api/agents/${id}/session/reset`, { method: 'POST' })
      const before = server.cpuMs()
      let tokens = 0
      for (let repeat = 0; repeat < 4; repeat++) {
        const read = await load<Tokens>('stream-load.ts', { port: server.port, streams: 1, kind, path, body })
        if (read.tokens !== count) throw new Error(`${read.tokens} of ${count} tokens arrived`)
        tokens += read.tokens
      }
      return tokens / ((server.cpuMs() - before) / 1000)
    }
    await measure(floor, '/', '{}')
    const path = kind === 'sse' ? `/api/agents/${id}/message/stream` : `/api/agents/${id}/ws`
    const body = kind === 'sse' ? '{"message":"go"}' : '{"type":"message","content":"go"}'
    await measure(svc, path, body)
    for (let round = 0; round < rounds; round++) {
      a.push(await measure(floor, '/', '{}'))
      b.push(await measure(svc, path, body))
    }
    results.push(atLeast(`streamed tokens per second of one core, ${kind}`, median(b), median(a), 0.6, perSecond))
  }
  return results
}

export const figures: readonly Figure[] = [
  { name: 'start', measure: start },
  { name: 'probes', measure: probes },
  { name: 'health', measure: health },
  { name: 'write', measure: write },
  { name: 'turn', measure: turn },
  { name: 'realistic-turn', measure: (_, beside) => realisticTurn(beside) },
  { name: 'stream', measure: stream },
  { name: 'providers', measure: providers },
  { name: 'provider-count', measure: providerCount },
  { name: 'models', measure: models },
  { name: 'session', measure: sessionLength },
  { name: 'reload', measure: reload },
  { name: 'hostile', measure: hostile },
  { name: 'audit-verify', measure: auditVerify },
  { name: 'channel-messages', measure: channelMessages },
  { name: 'channel-idle', measure: channelIdle },
  { name: 'channel-fleet', measure: channelFleet },
  { name: 'channel-start', measure: channelStart },
  { name: 'channel-load', measure: channelLoad },
  { name: 'mcp-idle', measure: mcpIdle },
  { name: 'mcp-turn', measure: mcpTurn },
  { name: 'mcp-call', measure: mcpCall },
  { name: 'skills', measure: skills },
  { name: 'memory', measure: async () => (await import('./memories.ts')).memories() },
  { name: 'memory-recall', measure: async () => (await import('./memory-recall.ts')).memoryRecall() },
  { name: 'workflows', measure: workflows },
  { name: 'schedules', measure: schedules },
  { name: 'agents', measure: agents },
  { name: 'few-agents', measure: fewAgents },
  { name: 'streams', measure: streamsAtOnce },
  { name: 'cluster', measure: cluster },
  { name: 'cluster-model', measure: clusterModel },
  { name: 'soak', measure: soak },
]
