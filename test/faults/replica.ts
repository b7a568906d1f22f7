import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { compiledCode } from '../support/built-package.ts'
import { daemonCommand } from '../support/daemon.ts'
import { prepareHome } from './home.ts'
import { beyond } from './report.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/**
 * A second daemon on the same home leaves at once and names the first; after a SIGKILL of the first the next one
 * starts without help.
 */
export async function replica({ built, rounds }: FaultOptions): Promise<FaultReport> {
  using home = await prepareHome({ built })
  const problems: string[] = []
  const refusalsMs: number[] = []
  const bootsMs: number[] = []
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const { file, path } = await daemonCommand(built)
  for (let round = 0; round < rounds; round++) {
    await using first = await home.start()
    bootsMs.push(first.bootMs)
    const since = performance.now()
    const second = spawn(process.execPath, [file, 'start', '--home', home.path, '--port', '0'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 20_000,
      env: { PATH: path, HOME: home.path, ...compiledCode },
    })
    const [stdout, stderr, [status]] = await Promise.all([
      text(second.stdout),
      text(second.stderr),
      once(second, 'close') as Promise<[number | null]>,
    ])
    refusalsMs.push(performance.now() - since)
    if (status === 0 || status === null) problems.push(`the second daemon ended with ${status}`)
    if (!`${stdout}${stderr}`.includes(String(first.pid)))
      problems.push(`the second daemon does not name process ${first.pid}: ${stderr}`)
    await first.kill()
  }
  const [slowestRefusalMs, slowestBootMs] = [Math.max(...refusalsMs), Math.max(...bootsMs)]
  problems.push(
    ...beyond(built, 'ms until the second daemon left', slowestRefusalMs, 2_000),
    ...beyond(built, 'ms of a start after a kill', slowestBootMs, 2_000),
  )
  return {
    rounds,
    slowest_refusal_ms: Math.round(slowestRefusalMs),
    slowest_boot_ms: Math.round(slowestBootMs),
    problems,
  }
}
