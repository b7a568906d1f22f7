import type { OnDefect } from '../errors/defect.ts'
import type { Scope } from '../scope/scope.ts'
import type { Jobs } from './job.ts'

type Run = (signal: AbortSignal) => Promise<void>

/** The recurring work of one plugin; ends with its scope. */
export function createJobs(scope: Scope, onDefect: OnDefect): Jobs {
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
      const tick = once(label, run)
      let job: { stop(): void } | undefined
      let stopped = false
      scope.own('job', `${label} (${expression})`, () => {
        stopped = true
        job?.stop()
      })
      // Loaded with the first job: most plugins have none.
      const start = async (): Promise<void> => {
        const { Cron } = await import('croner')
        if (!stopped) job = new Cron(expression, { timezone: 'UTC', mode: '5-part', unref: true }, tick)
      }
      start().catch((error: unknown) => {
        onDefect(error, `plugin "${scope.name}", job ${label}: "${expression}"`)
      })
    },
    every(label, ms, run) {
      const tick = once(label, run)
      const timer = setInterval(() => {
        void tick()
      }, ms)
      timer.unref()
      scope.own('job', `${label} (every ${ms} ms)`, () => clearInterval(timer))
    },
  }
}
