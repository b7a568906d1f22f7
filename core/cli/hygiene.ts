import { exits, Failure } from './failure.ts'

/** What opens the memory of the process, keys and all, to whoever reaches a port or a file. */
const opening = /^--(?:inspect(?:-brk|-port|-wait)?|debug|heapsnapshot-signal|heapsnapshot-near-heap-limit|report-on-signal)(?:=|$)/

/** Refuses to serve with a debugger or a dump of memory at hand, and keeps the environment out of diagnostic reports. Throws `Failure`. */
export function closeProcess(execArgv: readonly string[], nodeOptions: string | undefined): void {
  const found = [...execArgv, ...(nodeOptions ?? '').split(/\s+/)].find((word) => opening.test(word))
  if (found !== undefined) {
    throw new Failure(exits.refused, `Node was started with ${found.split('=')[0]}: whoever reaches it reads every key of this daemon`, 'start without it; `svc dev` takes it')
  }
  if (process.report) process.report.excludeEnv = true
}
