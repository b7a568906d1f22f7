import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import type { Json } from '../support/json.ts'
import { beginWork, causeEvents, isResult, postTasks, problemsOfAgents, problemsOfTasks } from './automation-agents.ts'
import { generator } from './crash.ts'

export interface AutomationReport {
  readonly runs: number
  readonly kills: number
  readonly tasks: number
  readonly effects: number
  /** Of schedules and triggers, by the keys that came. */
  readonly results: number
  readonly seed: number
  readonly problems: readonly string[]
}

const json = { 'content-type': 'application/json' }
const LATE_MS = 120_000
const TASKS_PER_KILL = 2
const POLL_MS = 100
const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms)
  })

/** Takes the effects of steps: how often each key came, by the path. */
async function startReceiver() {
  const keys = new Map<string, Map<string, number>>()
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    const key = String(request.headers['idempotency-key'])
    const counts = keys.get(path) ?? new Map<string, number>()
    keys.set(path, counts.set(key, (counts.get(key) ?? 0) + 1))
    request.resume().on('end', () => response.end(`done ${path}`))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, keys, close: () => server.close() }
}

/** Each step writes to a path of its own, so that the receiver knows which one acted. */
export function stepsOf(url: string, agentName = 'worker'): readonly object[] {
  const put = (name: string, more: { readonly mode?: string; readonly [field: string]: unknown } = {}) => ({
    name,
    type: 'http',
    with: {
      method: 'PUT',
      url: `${url}/{{run_id}}/${name}${more.mode === 'loop' ? '{{iteration}}' : ''}`,
      body: '{{input}}',
    },
    ...more,
  })
  return [
    put('first'),
    { name: 'ask', agent_name: agentName, prompt: 'Say something about {{input}}' },
    put('left', { mode: 'fan_out' }),
    put('right', { mode: 'fan_out' }),
    { name: 'both', mode: 'collect' },
    put('loop', { mode: 'loop', max_iterations: 3, until: 'never' }),
    put('last'),
  ]
}
/** The paths of a run that a request comes to. */
export const EFFECTS = ['first', 'left', 'right', 'loop1', 'loop2', 'loop3', 'last']

/**
 * Kills the daemon at random while workflows run, schedules and triggers fire and agents work on tasks: every run ends, no step is lost, and
 * whatever a step sent more than once because it was cut off has the same key. Every slot runs once, and every event
 * fires its trigger once, and every task is done.
 */
export async function automation(options: {
  readonly runs: number
  readonly schedules: number
  readonly triggers: number
  readonly kills: number
  readonly seed: number
  readonly built?: boolean
}): Promise<AutomationReport> {
  const random = generator(options.seed)
  const home = mkdtempSync(join(tmpdir(), 'svc-automation-'))
  const receiver = await startReceiver()
  const start = (): Promise<DaemonProcess> =>
    startDaemon({
      home,
      built: options.built ?? false,
      env: { SVC_RATE_LIMIT__TOKENS_PER_MINUTE: '1000000000', SVC_OUTBOUND__ALLOW: '127.0.0.1' },
    })
  let daemon = await start()
  const call = async (method: string, path: string, body?: unknown, key?: string): Promise<Json> => {
    const answer = await fetch(`${daemon.url}${path}`, {
      method,
      headers: { ...json, ...(key !== undefined && { 'idempotency-key': key }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`)
    return JSON.parse(text)
  }
  try {
    const model = '[model]\nprovider = "builtin"\nmodel = "offline"\n'
    const { agent_id: agent } = await call('POST', '/api/agents', { manifest_toml: `name = "worker"\n${model}` })
    const steps = stepsOf(receiver.url)
    const { workflow_id: workflow } = await call('POST', '/api/workflows', { name: 'fault', steps })
    const runs: string[] = []
    for (let n = 0; n < options.runs; n++) {
      const started = await call('POST', `/api/workflows/${workflow}/run?wait=false`, { input: `${n}` }, randomUUID())
      runs.push(started.run_id)
    }
    const work = await beginWork(call, receiver.url, { ...options, random })
    const acknowledged: string[] = []
    const tasks: string[] = []
    for (let kill = 0; kill < options.kills; kill++) {
      acknowledged.push(await causeEvents(call, agent, work, random))
      tasks.push(...(await postTasks(call, TASKS_PER_KILL)))
      await pause(random() * 200)
      await daemon.kill()
      daemon = await start()
    }
    const problems = [
      ...(await problemsOf(runs, (id) => call('GET', `/api/workflows/runs/${id}`), receiver.keys)),
      ...(await problemsOfAgents(call, work, receiver.keys, acknowledged)),
      ...(await problemsOfTasks(call, tasks)),
    ]
    const { seed, kills } = options
    return { runs: runs.length, kills, tasks: tasks.length, ...countKeys(receiver.keys), seed, problems }
  } finally {
    await daemon.kill()
    receiver.close()
    rmSync(home, { recursive: true, force: true })
  }
}

function countKeys(keys: ReadonlyMap<string, ReadonlyMap<string, number>>) {
  const [results, effects] = [
    [...keys].filter(([path]) => isResult(path)),
    [...keys.keys()].filter((path) => !isResult(path)),
  ]
  return { effects: effects.length, results: results.reduce((sum, [, found]) => sum + found.size, 0) }
}

async function problemsOf(
  runs: readonly string[],
  read: (id: string) => Promise<Json>,
  keys: ReadonlyMap<string, ReadonlyMap<string, number>>,
): Promise<readonly string[]> {
  const problems: string[] = []
  const deadline = Date.now() + LATE_MS
  for (const id of runs) {
    let run = await read(id)
    while (['Pending', 'Running'].includes(run.state) && Date.now() < deadline) {
      await pause(POLL_MS)
      run = await read(id)
    }
    if (run.state !== 'Completed') problems.push(`run ${id} is ${run.state}: ${run.error ?? 'still'}`)
    const recorded = run.step_results.filter(({ state }: Json) => state === 'completed').length
    if (recorded !== EFFECTS.length + 2) problems.push(`run ${id} has ${recorded} results`)
    for (const effect of EFFECTS) {
      const found = keys.get(`/${id}/${effect}`)?.size ?? 0
      if (found !== 1) problems.push(`${effect} of run ${id} was sent under ${found} keys`)
    }
  }
  return problems
}
