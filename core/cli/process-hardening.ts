import { writeFileSync } from 'node:fs'
import { exits, Failure } from './failure.ts'
import { commandLine } from '../process/command-name.ts'

/** What opens the memory of the process, keys and all, to whoever reaches a port or a file. */
const opening =
  /^--(?:inspect(?:-brk|-port|-wait)?|debug|heapsnapshot-signal|heapsnapshot-near-heap-limit|report-on-signal)(?:=|$)/

/**
 * Refuses to serve with a debugger or a dump of memory at hand; keeps the environment out of diagnostic reports and all
 * memory out of what is left after a crash. Throws `Failure`.
 */
export function hardenProcess(execArgv: readonly string[], nodeOptions: string | undefined): void {
  // Node takes underscores for hyphens, and quotes around a word of the variable.
  const found = [...execArgv, ...(nodeOptions ?? '').split(/\s+/)]
    .map((word) => word.replaceAll(/["\\]/g, '').replace(/^[^=]*/, (name) => name.replaceAll('_', '-')))
    .find((word) => opening.test(word))
  if (found !== undefined) {
    throw new Failure(
      exits.refused,
      `Node was started with ${found.split('=')[0]}: whoever can connect to it can read every key of this daemon`,
      `start without it; ${commandLine('dev')} takes it`,
    )
  }
  if (process.report) process.report.excludeEnv = true
  // Better than a core of size zero, which does not count where cores are handed to a program: core(5).
  try {
    if (process.platform === 'linux') writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    /* A system without the file makes no cores of its own. */
  }
  closeDebugger()
}

/**
 * Closes the debugger that the signal for it opened before anybody listened for that signal. Does nothing when none is
 * open.
 */
export function closeDebugger(): void {
  // `inspector.close()` is the same and brings two megabytes with it.
  const end: unknown = Reflect.get(process, '_debugEnd')
  if (typeof end === 'function') Reflect.apply(end, process, [])
}
