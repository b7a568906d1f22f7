import { closeSync, existsSync, openSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { startDetached } from '../process/operator-program.ts'
import { readOwnJson } from '../schema/nesting.ts'
import { readDaemonFile } from '../storage/lock.ts'
import { exits, Failure } from './failure.ts'
import { commandFor } from './home-location.ts'
import type { HomeLocation } from './home-location.ts'
import { print, printJson } from './output.ts'
import { prepareHome } from './prepare-home.ts'
import { programOfThis } from './service/unit.ts'

const Listening = v.looseObject({ url: v.string(), pid: v.number() })
const Failed = v.object({
  error: v.object({ message: v.string(), exit: v.number(), advice: v.nullish(v.string()) }),
})

/** Starts the daemon in the background and returns when it listens. `words`: the flags of `svc start`. */
export async function startInBackground(
  location: HomeLocation,
  words: readonly string[],
  isJson: boolean,
): Promise<number> {
  prepareHome(location.home)
  const logFile = join(location.home, 'daemon.log')
  // The log of the run before is kept, so that two files are all there ever are.
  if (existsSync(logFile) && readDaemonFile(location.home) === undefined) renameSync(logFile, `${logFile}.1`)
  const log = openSync(logFile, 'a', 0o600)
  const [program, ...rest] = programOfThis()
  const flags = words.filter((word) => word !== '--detach' && word !== '--json')
  const daemon = await startDetached(program, [...rest, 'start', ...flags, '--json'], log)
  closeSync(log)
  const line = await daemon.firstLine
  if (line === undefined) throw explainEnd(await daemon.ended, logFile)
  daemon.release()
  const { url, pid } = v.parse(Listening, readOwnJson(line))
  if (isJson) printJson({ status: 'listening', url, pid, home: location.home, log: logFile })
  else
    print(
      `svc listening on ${url} (process ${pid})\n` +
        `Log: ${logFile}, or ${commandFor(location, 'logs --follow')}\n` +
        `Stop it with ${commandFor(location, 'stop')}`,
    )
  return exits.ok
}

/** The last thing the daemon wrote into its log is why it ended. */
function explainEnd(code: number | null, logFile: string): Failure {
  const lines = readFileSync(logFile, 'utf8').split('\n')
  const last = lines.findLast((line) => line.startsWith('{"error":'))
  if (last !== undefined) {
    const failed = v.safeParse(Failed, readOwnJson(last))
    if (failed.success) {
      const { message, exit, advice } = failed.output.error
      return new Failure(exit, message, advice ?? undefined)
    }
  }
  return new Failure(
    code === null || code === 0 ? exits.failed : code,
    `the daemon ended before it listened (${code === null ? 'by a signal' : `code ${code}`})`,
    `read its log: ${logFile}`,
  )
}
