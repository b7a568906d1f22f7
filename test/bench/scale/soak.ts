import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Result } from '../figures.ts'
import { Home, freePort, root, startServer, startSvc } from '../processes.ts'
import type { Server } from '../processes.ts'

const SAMPLE_MS = 5000
/**
 * Before each sample the daemon collects what is dead, so that what is alive is known and not guessed from what a
 * collection at an odd moment left, and says how much of it is compiled code: V8 compiles what is hot for many minutes
 * longer than anything else fills up.
 */
const COLLECTING = `data:text/javascript,${encodeURIComponent(`
  import { getHeapSpaceStatistics } from 'node:v8'
  process.on('SIGUSR2', () => {
    globalThis.gc()
    const used = getHeapSpaceStatistics().filter(({ space_name: name }) => /code|trusted/.test(name))
    console.log('compiled code: ' + used.reduce((sum, space) => sum + space.space_used_size, 0))
  })
`)}`
const COLLECT_MS = 500
/** Part of the time in which nothing is compared. */
const WARM = 0.2
/** So much of the same load goes before, as fast as it goes: what five minutes of it are at its own pace. */
const FILLING = 60_000
const json = { 'content-type': 'application/json' }

interface Sample {
  readonly minutes: number
  readonly liveMb: number | undefined
  /** Of it compiled code. */
  readonly codeMb: number | undefined
  readonly rssMb: number
  readonly privateMb: number
  readonly fds: number
  readonly walMb: number
}
interface Count {
  requests: number
  failures: number
  first: string
}
interface Work {
  readonly base: string
  readonly running: () => boolean
  /** 1 is the pace that is measured. */ readonly hurry: number
  readonly count: Count
}

const post = (url: string, body: unknown, init: RequestInit = {}): Promise<Response> =>
  fetch(url, { method: 'POST', headers: json, body: JSON.stringify(body), ...init })
const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

/** Repeats one kind of work at a steady pace, so that every part of the run carries the same load. */
async function repeat(
  { running, hurry, count }: Work,
  everyMs: number,
  step: (round: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; running(); round++) {
    const begun = performance.now()
    try {
      await step(round)
      count.requests++
    } catch (error) {
      count.failures++
      count.first ||= error instanceof Error ? error.message : String(error)
    }
    await pause(Math.max(0, everyMs / hurry - (performance.now() - begun)))
  }
}
async function ok(answer: Promise<Response> | Response): Promise<string> {
  const got = await answer
  const text = await got.text()
  if (!got.ok) throw new Error(`${got.url} answered ${got.status}: ${text.slice(0, 200)}`)
  return text
}

/**
 * What a busy service sees: turns, streams that are read and streams that are left, sockets, keys and values, agents
 * that come and go.
 */
function loads(work: Work, agents: readonly string[]): readonly Promise<void>[] {
  const { base } = work
  const agent = (round: number): string => agents[round % agents.length] ?? ''
  const streamUrl = (round: number): string => `${base}/api/agents/${agent(round)}/message/stream`
  return [
    // The sessions are begun anew now and then: one that only grows is another figure.
    repeat(work, 40, async (round) => {
      await ok(post(`${base}/api/agents/${agent(round)}/message`, { message: `question ${round}` }))
      if (round % 400 < agents.length)
        await ok(fetch(`${base}/api/agents/${agent(round)}/session/reset`, { method: 'POST' }))
    }),
    repeat(work, 60, async (round) => {
      await ok(post(streamUrl(round + 3), { message: 'tell me more' }))
    }),
    repeat(work, 100, async (round) => {
      const leave = new AbortController()
      const answer = await post(streamUrl(round + 5), { message: 'never mind' }, { signal: leave.signal })
      await answer.body?.getReader().read()
      leave.abort()
    }),
    repeat(
      work,
      150,
      (round) =>
        new Promise<void>((resolve, reject) => {
          const socket = new WebSocket(`${base.replace('http', 'ws')}/api/agents/${agent(round + 7)}/ws`)
          socket.addEventListener('open', () => socket.send('{"type":"message","content":"over a socket"}'))
          socket.addEventListener('message', ({ data }) => {
            if (String(data).startsWith('{"type":"response"')) socket.close()
          })
          socket.addEventListener('close', () => resolve())
          socket.addEventListener('error', () => reject(new Error('a socket failed')))
        }),
    ),
    repeat(work, 10, async (round) => {
      const url = `${base}/api/memory/agents/${agent(round)}/kv/key-${round % 200}`
      await ok(
        fetch(url, {
          method: 'PUT',
          headers: json,
          body: JSON.stringify({ value: { round, text: 'x'.repeat(round % 500) } }),
        }),
      )
      await ok(fetch(url))
    }),
    repeat(work, 250, async (round) => {
      const made = JSON.parse(
        await ok(post(`${base}/api/agents`, { manifest_toml: `name = "passing-${round}"\n` })),
      ) as { agent_id: string }
      await ok(post(`${base}/api/agents/${made.agent_id}/message`, { message: 'hello' }))
      await ok(fetch(`${base}/api/agents/${made.agent_id}`, { method: 'DELETE' }))
    }),
    repeat(work, 20, async (round) => {
      const paths = [
        '/api/agents',
        '/api/health',
        '/api/sessions',
        '/api/audit/recent',
        '/api/tools',
        '/api/usage',
        '/api/nothing-here',
        `/api/agents/${agent(round)}/metrics`,
        `/api/agents/${agent(round)}/session`,
      ]
      await (await fetch(base + (paths[round % paths.length] ?? ''))).text()
    }),
    // A plugin that leaves something behind at every reload would show.
    repeat(work, 15_000, async () => {
      await ok(post(`${base}/api/plugins/clock/reload`, {}))
    }),
  ]
}

/**
 * Brings what is bounded to its bound before anything is measured: SQLite's pages (16 MB), the tails of sessions
 * (500 of them, 16,000,000
 * characters together), what is known of the summaries of 1,000 sessions, the labels of 1,000 agents in the metrics,
 * the last lines of the log, and what
 * is V8's own: code of the functions that a load makes hot (2 MB, thousands of calls later), the young generation
 * and its spare pages. What leaks
 * goes on growing; only what is full by then stays as it is.
 */
async function fill(base: string, agents: readonly string[], count: Count): Promise<void> {
  let next = 0
  const lanes = (count: number, step: (at: number) => Promise<void>): Promise<unknown> => {
    next = 0
    return Promise.all(
      Array.from({ length: 16 }, async () => {
        for (let at = next++; at < count; at = next++) await step(at)
      }),
    )
  }
  await lanes(agents.length * 30, async (at) => {
    const agent = agents[at % agents.length] ?? ''
    for (let message = 0; message < 4; message++)
      await ok(post(`${base}/api/agents/${agent}/message`, { message: `to fill it ${message}` }))
    await ok(fetch(`${base}/api/agents/${agent}/session/reset`, { method: 'POST' }))
  })
  const value = 'x'.repeat(4000)
  await lanes(6000, async (at) => {
    await ok(
      fetch(`${base}/api/memory/agents/${agents[at % agents.length] ?? ''}/kv/fill-${at}`, {
        method: 'PUT',
        headers: json,
        body: JSON.stringify({ value }),
      }),
    )
  })
  await lanes(agents.length, async (at) => {
    await ok(fetch(`${base}/api/memory/agents/${agents[at] ?? ''}/kv`))
  })
  await Promise.all(loads({ base, running: () => count.requests < FILLING, hurry: 10, count }, agents))
}

function sample(svc: Server, home: Home, minutes: number): Sample {
  const wal = readdirSync(join(home.path, 'data'))
    .filter((name) => name.endsWith('-wal'))
    .reduce((sum, name) => sum + statSync(join(home.path, 'data', name)).size, 0)
  // What was left of the heap by the last full collection: all that a leak can hide in.
  const live = svc
    .output()
    .matchAll(/Mark-Compact [\d.]+ \([\d.]+\) -> ([\d.]+)/g)
    .toArray()
    .at(-1)?.[1]
  const code = svc
    .output()
    .matchAll(/compiled code: (\d+)$/gm)
    .toArray()
    .at(-1)?.[1]
  return {
    minutes,
    codeMb: code === undefined ? undefined : Number(code) / 1024 / 1024,
    liveMb: live === undefined ? undefined : Number(live),
    rssMb: svc.rssMb(),
    privateMb: svc.privateMb(),
    fds: readdirSync(`/proc/${svc.pid}/fd`).length,
    walMb: wal / 1024 / 1024,
  }
}
/** The least of each minute: what is above it comes and goes with the collections, what is below it stays. */
function floorOf(
  points: readonly (readonly [minutes: number, value: number])[],
): readonly (readonly [minutes: number, value: number])[] {
  const least = new Map<number, readonly [number, number]>()
  for (const point of points)
    if (point[1] < (least.get(Math.floor(point[0]))?.[1] ?? Infinity)) least.set(Math.floor(point[0]), point)
  return [...least.values()]
}
/** Least squares: how much a figure grows in ten minutes, in its own unit. */
export function slopePerTenMinutes(points: readonly (readonly [minutes: number, value: number])[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  const [x, y] = [mean(points.map(([minutes]) => minutes)), mean(points.map(([, value]) => value))]
  const above = points.reduce((sum, [minutes, value]) => sum + (minutes - x) * (value - y), 0)
  const below = points.reduce((sum, [minutes]) => sum + (minutes - x) ** 2, 0)
  return below === 0 ? 0 : (above / below) * 10
}

/**
 * Mixed load for some minutes; memory, descriptors and the write-ahead log must not grow. Two minutes only tell of
 * gross leaks.
 */
export async function soak(minutes = 2): Promise<readonly Result[]> {
  const port = await freePort()
  await using provider = await startServer([join(root, 'test/bench/floor/instant-provider.ts')], {
    port,
    path: '/',
    env: { TOKENS: '40' },
    core: 1,
  })
  using home = new Home(
    `default_provider = "openai"\ndefault_model = "bench"\n[providers.openai]\nbase_url = "http://127.0.0.1:${provider.port}/v1"\napi_key = "bench-key"\n`,
  )
  await using svc = await startSvc(home, {}, ['--trace-gc', '--expose-gc', '--import', COLLECTING])
  const base = `http://127.0.0.1:${svc.port}`
  const agents: string[] = []
  for (let index = 0; index < 20; index++)
    agents.push(
      (
        JSON.parse(await ok(post(`${base}/api/agents`, { manifest_toml: `name = "soak-${index}"\n` }))) as {
          agent_id: string
        }
      ).agent_id,
    )
  const before: Count = { requests: 0, failures: 0, first: '' }
  await fill(base, agents, before)
  const begun = performance.now()
  const passed = (): number => (performance.now() - begun) / 60_000
  const count: Count = { ...before, requests: 0 }
  const all = loads({ base, running: () => passed() < minutes, hurry: 1, count }, agents)
  const samples: Sample[] = []
  while (passed() < minutes) {
    await pause(SAMPLE_MS - COLLECT_MS)
    process.kill(svc.pid, 'SIGUSR2')
    await pause(COLLECT_MS)
    samples.push(sample(svc, home, passed()))
  }
  await Promise.all(all)
  const kept = samples.filter((each) => each.minutes >= minutes * WARM)
  const of = (pick: (each: Sample) => number) => kept.map((each) => [each.minutes, pick(each)] as const)
  const middle = kept[Math.floor(kept.length / 2)]
  const rss = slopePerTenMinutes(floorOf(of((each) => each.rssMb)))
  const share = (rss / (middle?.rssMb ?? 1)) * 100
  const own = slopePerTenMinutes(floorOf(of((each) => each.privateMb)))
  const ownShare = (own / (middle?.privateMb ?? 1)) * 100
  const fds = slopePerTenMinutes(floorOf(of((each) => each.fds)))
  const live = kept.flatMap(({ minutes: at, liveMb }) => (liveMb === undefined ? [] : [[at, liveMb] as const]))
  const lives = live.map(([, mb]) => mb)
  const heap = live.length < 2 ? Number.NaN : slopePerTenMinutes(floorOf(live))
  const heapShare = (heap / (live[Math.floor(live.length / 2)]?.[1] ?? 1)) * 100
  const code = kept.flatMap(({ minutes: at, codeMb }) => (codeMb === undefined ? [] : [[at, codeMb] as const]))
  const compiled = code.length < 2 ? Number.NaN : slopePerTenMinutes(floorOf(code))
  const last = samples.at(-1)
  const say = `${kept[0]?.rssMb.toFixed(0)} MB at minute ${kept[0]?.minutes.toFixed(1)}, ${last?.rssMb.toFixed(0)} MB at ${last?.minutes.toFixed(1)}`
  const worst = (pick: (each: Sample) => number): number => Math.max(...kept.map(pick))
  return [
    {
      label: `soak: heap that is alive after a collection, ${Math.min(...lives).toFixed(1)} to ${Math.max(...lives).toFixed(1)} MB`,
      value: `${heap >= 0 ? '+' : ''}${heap.toFixed(2)} MB`,
      floor: '-',
      ratio: `${heapShare.toFixed(1)} %`,
      goal: '<= 1 % in 10 minutes',
      reached: heapShare <= 1,
    },
    {
      label: `soak: of it compiled code, ${code[0]?.[1].toFixed(1)} to ${code.at(-1)?.[1].toFixed(1)} MB`,
      value: `${compiled >= 0 ? '+' : ''}${compiled.toFixed(2)} MB`,
      floor: '-',
      ratio: '-',
      goal: '',
    },
    {
      label: `soak of ${minutes} minutes, ${count.requests.toLocaleString('en')} requests and turns (failed ${count.failures}${count.first && `: ${count.first}`}): RSS, ${say}`,
      value: `${rss >= 0 ? '+' : ''}${rss.toFixed(1)} MB`,
      floor: '-',
      ratio: `${share.toFixed(1)} %`,
      goal: '<= 1 % in 10 minutes',
      reached: share <= 1 && count.failures === 0,
    },
    {
      label: 'soak: private memory',
      value: `${own >= 0 ? '+' : ''}${own.toFixed(1)} MB`,
      floor: '-',
      ratio: `${ownShare.toFixed(1)} %`,
      goal: '<= 1 % in 10 minutes',
      reached: ownShare <= 1,
    },
    {
      label: `soak: open descriptors (most ${worst((each) => each.fds)})`,
      value: fds.toFixed(1),
      floor: '-',
      ratio: '-',
      goal: '<= 5 in 10 minutes',
      reached: fds <= 5,
    },
    {
      label: 'soak: write-ahead log, most',
      value: `${worst((each) => each.walMb).toFixed(0)} MB`,
      floor: '-',
      ratio: '-',
      goal: '<= 64 MB',
      reached: worst((each) => each.walMb) <= 64,
    },
  ]
}
