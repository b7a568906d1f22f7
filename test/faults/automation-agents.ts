import type { Json } from '../support/json.ts'

/** Schedules and triggers that work while the daemon is killed, and what has to have become of them. */
export interface AgentsAtWork {
  readonly schedules: readonly { readonly id: string; readonly path: string; readonly isOnce: boolean }[]
  readonly triggers: readonly { readonly id: string; readonly path: string; readonly key: string }[]
}
export type Call = (method: string, path: string, body?: unknown) => Promise<Json>
type Keys = ReadonlyMap<string, ReadonlyMap<string, number>>

const RESULTS = '/results'
const LATE_MS = 120_000
const POLL_MS = 200
const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
export const isResult = (path: string): boolean => path.startsWith(RESULTS)

/** Half of the schedules have a time of their own soon, the others one every minute. */
export async function beginWork(
  call: Call,
  url: string,
  options: { readonly schedules: number; readonly triggers: number; readonly random: () => number },
): Promise<AgentsAtWork> {
  const schedules: { id: string; path: string; isOnce: boolean }[] = []
  const triggers: { id: string; path: string; key: string }[] = []
  const target = (path: string) => ({ kind: 'webhook', url: `${url}${path}` })
  for (let n = 0; n < options.schedules; n++) {
    const path = `${RESULTS}/schedule/${n}`
    const at = new Date(Date.now() + 1_000 + options.random() * 4_000).toISOString()
    const schedule = n % 2 === 0 ? { kind: 'at', at } : { kind: 'every', every_secs: 60 }
    const body = { agent_id: 'worker', name: `slot ${n}`, schedule, prompt: `Slot of ${n}`, session_mode: 'new' }
    schedules.push({
      id: (await call('POST', '/api/schedules', { ...body, delivery: target(path) })).id,
      path,
      isOnce: n % 2 === 0,
    })
  }
  for (let n = 0; n < options.triggers; n++) {
    const path = `${RESULTS}/trigger/${n}`
    const key = `fault.${n}`
    const { trigger_id: id } = await call('POST', '/api/triggers', {
      agent_id: 'worker',
      pattern: { memory_key_pattern: { key_pattern: key } },
      cooldown_secs: 0,
      session_mode: 'new',
      delivery: target(path),
    })
    triggers.push({ id, path, key })
  }
  return { schedules, triggers }
}

/**
 * Causes an event of one trigger, which is acknowledged, and then of some others. The daemon may be killed during these:
 * the trail says which ones happened. Returns the key of the one that was acknowledged.
 */
export async function causeEvents(
  call: Call,
  agentId: string,
  { triggers }: AgentsAtWork,
  random: () => number,
): Promise<string> {
  const put = (key: string) => call('PUT', `/api/memory/agents/${agentId}/kv/${key}`, { value: random() })
  const sure = triggers[Math.floor(random() * triggers.length)]?.key ?? ''
  await put(sure)
  for (const { key } of triggers) if (random() < 0.5) put(key).catch(() => {})
  return sure
}

/** Posts tasks that the agent is woken for, each acknowledged. Returns their ids. */
export async function postTasks(call: Call, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const body = { title: `echo task ${n}`, description: '', assigned_to: 'worker' }
    ids.push((await call('POST', '/api/tasks', body)).id)
  }
  return ids
}

/** Every task that was acknowledged is done, by one turn. */
export async function problemsOfTasks(call: Call, ids: readonly string[]): Promise<readonly string[]> {
  const deadline = Date.now() + LATE_MS
  const problems: string[] = []
  const turns = new Set<string>()
  for (const id of ids) {
    let task = await call('GET', `/api/tasks/${id}`)
    while (['pending', 'in_progress'].includes(task.status) && Date.now() < deadline) {
      await pause(POLL_MS)
      task = await call('GET', `/api/tasks/${id}`)
    }
    if (task.status !== 'completed') problems.push(`task ${id} is ${task.status}: ${task.result ?? 'still'}`)
    turns.add(task.turn_id)
  }
  if (turns.size !== ids.length) problems.push(`${ids.length} tasks were done by ${turns.size} turns`)
  return problems
}

/** What is wrong with schedules and triggers once all has ended. */
export async function problemsOfAgents(
  call: Call,
  work: AgentsAtWork,
  keys: Keys,
  acknowledged: readonly string[],
): Promise<readonly string[]> {
  const deadline = Date.now() + LATE_MS
  const problems: string[] = []
  // Those that come every minute are at an end now.
  for (const { id, isOnce } of work.schedules)
    if (!isOnce) await call('PUT', `/api/schedules/${id}`, { enabled: false })
  const received = (path: string): number => keys.get(path)?.size ?? 0
  for (const { id, path, isOnce } of work.schedules) {
    const read = async (): Promise<readonly Json[]> =>
      (await call('GET', `/api/schedules/${id}/slots?limit=1000`)).slots
    const slots = await untilEnded(read, deadline, () => received(path), isOnce ? 1 : 0)
    if (isOnce && slots.length !== 1) problems.push(`${path}: ${slots.length} slots instead of one`)
    problems.push(...problemsOfSlots(path, slots, received(path)))
  }
  const { entries } = await call('GET', '/api/audit/recent?limit=500&event_type=memory_access')
  for (const { id, path, key } of work.triggers) {
    const read = async (): Promise<readonly Json[]> =>
      (await call('GET', `/api/triggers/${id}/history?limit=1000`)).firings
    const events = entries.filter(({ details }: Json) => details.startsWith(`set key "${key}" `)).length
    const sure = acknowledged.filter((each) => each === key).length
    if (events < sure) problems.push(`${path}: ${sure} events were acknowledged, ${events} are recorded`)
    const firings = await untilEnded(read, deadline, () => received(path), events)
    const done = firings.filter(({ state }) => state === 'done').length
    const distinct = new Set(firings.map(({ event_id: event }) => event)).size
    if (distinct !== firings.length) problems.push(`${path}: an event fired twice`)
    if (done !== events) problems.push(`${path}: ${events} events, ${done} of ${firings.length} firings are done`)
    if (received(path) !== done) problems.push(`${path}: ${done} firings, ${received(path)} results`)
  }
  return problems
}

/** The rows once none is open, there are as many as expected, and as many results as came of them. */
async function untilEnded(
  read: () => Promise<readonly Json[]>,
  deadline: number,
  received: () => number,
  expected = 0,
): Promise<readonly Json[]> {
  for (;;) {
    const rows = await read()
    const done = rows.filter(({ state }) => state === 'done').length
    const isOver = rows.every(({ state }) => state !== 'open') && rows.length >= expected && received() >= done
    if (isOver || Date.now() >= deadline) return rows
    await pause(POLL_MS)
  }
}

function problemsOfSlots(path: string, slots: readonly Json[], received: number): readonly string[] {
  const problems: string[] = []
  const times = slots.map(({ slot }) => Date.parse(slot)).toSorted((a, b) => a - b)
  const done = slots.filter(({ state }) => state === 'done').length
  const lost = slots.filter(({ state, reason }) => state !== 'done' && reason === null)
  if (new Set(times).size !== times.length) problems.push(`${path}: a slot ran twice`)
  if (lost.length > 0) problems.push(`${path}: ${lost.length} slots are ${lost[0]?.state} for no reason`)
  for (const [n, at] of times.entries())
    if (n > 0 && at - (times[n - 1] ?? 0) > 60_000)
      problems.push(`${path}: a slot before ${new Date(at).toISOString()} is missing`)
  if (received !== done) problems.push(`${path}: ${done} slots, ${received} results`)
  return problems
}
