import { join } from 'node:path'
import type { Result } from '../figures.ts'
import { Home, freePort, load, root, startServer, startSvc } from '../processes.ts'
import type { Server } from '../processes.ts'

interface Read {
  readonly tokens: number
  readonly lost: number
  readonly disordered: number
  readonly failures: number
  readonly firstFailure: string
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}
const streams = 1000
const rate = 20
const seconds = 30

async function spawnAgents(svc: Server): Promise<readonly string[]> {
  const ids: string[] = []
  for (let from = 0; from < streams; from += 50) {
    const bodies = Array.from({ length: 50 }, (_, index) => ({ manifest_toml: `name = "stream-${from + index}"\n` }))
    const answer = await fetch(`http://127.0.0.1:${svc.port}/api/agents/bulk`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agents: bodies }),
    })
    const { results } = (await answer.json()) as { results: { agent_id: string }[] }
    ids.push(...results.map((each) => each.agent_id))
  }
  return ids
}

/** 1,000 answers at once at 20 tokens a second each, against the same provider read without anything in between. */
export async function streamsAtOnce(): Promise<readonly Result[]> {
  const port = await freePort()
  const tokens = rate * seconds
  await using provider = await startServer([join(root, 'test/bench/floor/paced-provider.ts')], {
    port,
    path: '/',
    env: { TOKENS: String(tokens), RATE: String(rate) },
    core: 1,
  })
  using home = new Home(
    `default_provider = "openai"\ndefault_model = "bench"\n[providers.openai]\nbase_url = "http://127.0.0.1:${provider.port}/v1"\napi_key = "bench-key"\n`,
  )
  const direct = await load<Read>('scale/streams-load.ts', {
    port: provider.port,
    paths: Array.from({ length: streams }, () => '/v1/chat/completions'),
    tokens,
    body: '{"messages":[]}',
    openMs: 10_000,
  })
  await using svc = await startSvc(home)
  const ids = await spawnAgents(svc)
  const before = svc.cpuMs()
  const read = await load<Read>('scale/streams-load.ts', {
    port: svc.port,
    paths: ids.map((id) => `/api/agents/${id}/message/stream`),
    tokens,
    body: '{"message":"go"}',
    openMs: 10_000,
  })
  const used = (svc.cpuMs() - before) / (seconds * 1000)
  const whole = read.tokens === streams * tokens && read.lost === 0 && read.disordered === 0 && read.failures === 0
  const added = read.p99Ms - direct.p99Ms
  return [
    {
      label: `1,000 streams at ${rate} tokens/s: tokens (lost ${read.lost}, out of order or twice ${read.disordered}, failed ${read.failures}${read.firstFailure && ` ${read.firstFailure}`})`,
      value: read.tokens.toLocaleString('en'),
      floor: (streams * tokens).toLocaleString('en'),
      ratio: '-',
      goal: 'every one once',
      reached: whole,
    },
    {
      label: `1,000 streams: lag p99 (p50 ${read.p50Ms} ms, max ${read.maxMs} ms; ${(used * 100).toFixed(0)} % of a core, ${svc.rssMb().toFixed(0)} MB)`,
      value: `${read.p99Ms} ms`,
      floor: `${direct.p99Ms} ms`,
      ratio: `+${added} ms`,
      goal: '<= 250 ms',
      reached: added <= 250,
    },
  ]
}
