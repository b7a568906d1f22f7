/**
 * Prints as JSON which files of the product run in a plain turn, and how many calls of their functions there are: a
 * message over REST, the default plugins, one answer of a model over the wire, no tools. A process of its own, because
 * its modules are those that Node runs, and not what vitest makes of them.
 */
import { Session } from 'node:inspector/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ManualTimer } from '../../core/jobs/manual-timer.ts'
import { openChat } from './chat-stage.ts'

export interface RunFile {
  readonly path: string
  readonly calls: number
}

const root = fileURLToPath(new URL('../..', import.meta.url))
// On a loaded machine a turn takes longer than the pauses between jobs, and each would have some of them.
await using stage = await openChat({
  memory: true,
  jobTimer: () => new ManualTimer(0),
  config: { plugins: { security: { first_probe_ms: 600_000 } } },
})
await stage.host.app.greeted()

async function runTurn(): Promise<void> {
  const response = await stage.post(`/api/agents/${stage.agent}/message`, { message: 'Good morning.' })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`the turn answered ${response.status}: ${text}`)
}

const session = new Session()

/** The functions that one turn calls, by file. */
async function measureTurn(): Promise<ReadonlyMap<string, number>> {
  await session.post('Profiler.takePreciseCoverage')
  await runTurn()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const calls = new Map<string, number>()
  for (const { url, functions } of result) {
    const path = url.startsWith('file://') ? relative(root, fileURLToPath(url)) : ''
    const count = functions.reduce((sum, { ranges }) => sum + (ranges[0]?.count ?? 0), 0)
    if (/^(?:core|plugins|adapters)\//.test(path) && count > 0) calls.set(path, count)
  }
  return calls
}

// What only a first turn does, such as loading a driver, is not part of a plain one.
await runTurn()
await runTurn()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
const first = await measureTurn()
const others = [await measureTurn(), await measureTurn(), await measureTurn(), await measureTurn()]
// A timer that falls into one of them is no part of a turn.
const files = [...first].flatMap(([path, calls]): RunFile[] => {
  const counts = others.map((each) => each.get(path) ?? 0)
  return counts.includes(0) ? [] : [{ path, calls: Math.min(calls, ...counts) }]
})
console.log(JSON.stringify(files))
