import type { OnDefect } from '../errors/defect.ts'
import type { Scope } from '../scope/scope.ts'
import type { Jobs } from './job.ts'
import { systemTimer } from './timer.ts'
import type { JobTimer } from './timer.ts'

type Run = (signal: AbortSignal) => Promise<void>

/** The recurring work of one plugin; ends with its scope. */
export function createJobs(scope: Scope, onDefect: OnDefect, timer: JobTimer = systemTimer): Jobs {
  const once = (label: string, run: Run): (() => Promise<void>) => {
    let running = false
    return async () => {
      if (running || scope.state !== 'open') return
      running = true
      try {
        await scope.run(() => run(scope.signal))
      } catch (error) {
        if (!scope.signal.aborted) onDefect(error, `plugin "${scope.name}", job ${label}`)
      } finally {
        running = false
      }
    }
  }

  return {
    cron(label, expression, run) {
      const stop = timer.cron(expression, once(label, run), (error) => {
        onDefect(error, `plugin "${scope.name}", job ${label}: "${expression}"`)
      })
      scope.own('job', `${label} (${expression})`, stop)
    },
    every(label, ms, run) {
      scope.own('job', `${label} (every ${ms} ms)`, timer.every(ms, once(label, run)))
    },
  }
}
