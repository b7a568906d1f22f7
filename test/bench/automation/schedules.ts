import { setTimeout as delay } from 'node:timers/promises'
import type { Result } from '../figures.ts'
import { Home } from '../processes.ts'
import { inParallel, request, spawnAgents, startRecorded } from './recorder.ts'
import type { Usage } from './recorder.ts'

const COUNT = 10_000
const AGENTS = 100
/** Those that are due at the same moment; the others are due at night. */
const DUE = 1_000
const WIDTH = 32
/** Turns at once of the baseline, as many as the lane of the queue runs. */
const LANE = 4
const MAX_LAG_MS = 50
const MAX_KB_EACH = 0.1
const MAX_WAIT_MS = 120_000
const DUE_AFTER_MS = 5_000
const POLL_MS = 200
const SETTLE_MS = 4_000
type Recorded = Awaited<ReturnType<typeof startRecorded>>
const config = `
max_cron_jobs = 100000
[plugins.queue.concurrency]
schedule = ${LANE}
[plugins.schedules]
max_jobs_per_agent = 100000
`
const add = (port: number, agent: string | undefined, index: number, schedule: unknown): Promise<object> =>
  request(port, 'POST', '/api/schedules', { agent_id: agent, name: `bench ${index}`, schedule, prompt: 'echo hello' })

/** Memory for 10,000 schedules, and the event loop while a thousand slots that are due at once begin and run. */
export async function schedules(): Promise<readonly Result[]> {
  using home = new Home(config)
  const agents = await make(home)
  const few = await afterStart(home)
  await addMany(home, agents)
  await using svc = await startRecorded(home)
  const many = await settled(svc)
  const { turns, slots, tookMs } = await fire(svc, agents)
  const kbEach = ((many.liveMb - few.liveMb) * 1024) / (COUNT - AGENTS - DUE)
  const mb = (value: number): string => `${value.toFixed(1)} MB`
  return [
    {
      label: `memory alive after a start with ${(COUNT - DUE).toLocaleString('en')} schedules, with ${AGENTS}; RSS`,
      value: `${mb(many.liveMb)}; ${mb(many.rssMb)}`,
      floor: `${mb(few.liveMb)}; ${mb(few.rssMb)}`,
      ratio: `${kbEach.toFixed(2)} KB each`,
      goal: `<= ${MAX_KB_EACH} KB`,
      reached: kbEach <= MAX_KB_EACH,
    },
    {
      label: `${DUE} slots due at once, run in ${(tookMs / 1000).toFixed(1)} s; as many messages: lag p99, longest, busy`,
      value: lagsOf(slots),
      floor: lagsOf(turns),
      ratio: `${(slots.lagP99Ms / turns.lagP99Ms).toFixed(2)} x`,
      goal: `p99, busy <= ${MAX_LAG_MS} ms`,
      reached: Math.max(slots.lagP99Ms, slots.busyMaxMs) <= MAX_LAG_MS,
    },
  ]
}

const lagsOf = ({ lagP99Ms, lagMaxMs, busyMaxMs }: Usage): string =>
  [lagP99Ms, lagMaxMs, busyMaxMs].map((value) => `${value.toFixed(1)} ms`).join(', ')

async function make(home: Home): Promise<readonly string[]> {
  await using svc = await startRecorded(home)
  const agents = await spawnAgents(svc.port, AGENTS)
  await inParallel(AGENTS, WIDTH, (index) => add(svc.port, agents[index], index, '0 3 * * *'))
  return agents
}
/** What is alive once the work of the start is over. */
async function settled({ usage }: Recorded): Promise<Usage> {
  await delay(SETTLE_MS)
  await usage()
  return usage()
}
async function afterStart(home: Home): Promise<Usage> {
  await using svc = await startRecorded(home)
  return await settled(svc)
}
async function addMany(home: Home, agents: readonly string[]): Promise<void> {
  await using svc = await startRecorded(home)
  await inParallel(COUNT - AGENTS - DUE, WIDTH, (index) =>
    add(svc.port, agents[index % AGENTS], index, `${index % 60} 3 * * *`),
  )
}

async function fire({ port, usage }: Recorded, agents: readonly string[]) {
  // Far enough ahead that all are made by then.
  const at = Date.now() + DUE_AFTER_MS + DUE * 10
  const schedule = { kind: 'at', at: new Date(at).toISOString() }
  await inParallel(DUE, WIDTH, (index) => add(port, agents[index % AGENTS], index, schedule))
  await usage()
  await inParallel(DUE, LANE, (index) =>
    request(port, 'POST', `/api/agents/${agents[index % AGENTS]}/message`, { message: 'echo hello' }),
  )
  const turns = await usage()
  if (Date.now() > at) throw new Error('the slots were due before all messages were answered')
  const tookMs = await waitForSlots(port, at)
  return { turns, slots: await usage(), tookMs }
}
/** Until all slots have run; how long after they were due. */
async function waitForSlots(port: number, dueAt: number): Promise<number> {
  await delay(Math.max(dueAt - Date.now(), 0))
  for (const until = performance.now() + MAX_WAIT_MS; performance.now() < until; await delay(POLL_MS)) {
    const { total } = await request<{ total: number }>(port, 'GET', '/api/schedules?enabled=true&limit=1')
    if (total === COUNT - DUE) return Date.now() - dueAt
  }
  throw new Error(`the slots did not end: ${JSON.stringify(await request(port, 'GET', '/api/queue/status'))}`)
}
