/**
 * Prints as JSON which files of the product run in one plain turn, and how many of their functions are called: a
 * message over REST, the default plugins, one answer of a model over the wire, no tools. A process of its own, because
 * its modules are those that Node runs, and not what vitest makes of them.
 */
import { Session } from 'node:inspector/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openChat } from './chat-stage.ts'

export interface RunFile {
  readonly path: string
  readonly calls: number
}

const root = fileURLToPath(new URL('../..', import.meta.url))
await using stage = await openChat({ memory: true, config: { plugins: { chat: { agents_updated_ms: 3_600_000 } } } })
await stage.host.app.greeted()

async function runTurn(): Promise<void> {
  const response = await stage.post(`/api/agents/${stage.agent}/message`, { message: 'Good morning.' })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`the turn answered ${response.status}: ${text}`)
}

// What only a first turn does, such as loading a driver, is not part of a plain one.
await runTurn()
await runTurn()
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
await session.post('Profiler.takePreciseCoverage')
await runTurn()
const { result } = await session.post('Profiler.takePreciseCoverage')

const files = result
  .filter(({ url }) => url.startsWith('file://'))
  .map(({ url, functions }): RunFile => ({
    path: relative(root, fileURLToPath(url)),
    calls: functions.reduce((sum, { ranges }) => sum + (ranges[0]?.count ?? 0), 0),
  }))
  .filter(({ path, calls }) => /^(?:core|plugins|adapters)\//.test(path) && calls > 0)
console.log(JSON.stringify(files))
