/** Schedules a job of a plugin. Returns a function that stops it. */
export interface JobTimer {
  every(ms: number, run: () => Promise<void>): () => void
  /** `onError` is called for an invalid expression. */
  cron(expression: string, run: () => Promise<void>, onError: (error: unknown) => void): () => void
}

/** Uses the clock of the machine. */
export const systemTimer: JobTimer = {
  every(ms, run) {
    const timer = setInterval(() => {
      void run()
    }, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
  cron(expression, run, onError) {
    let job: { stop(): void } | undefined
    let isStopped = false
    // Loaded with the first job: most plugins have none.
    const start = async (): Promise<void> => {
      const { Cron } = await import('croner')
      if (!isStopped) job = new Cron(expression, { timezone: 'UTC', mode: '5-part', unref: true }, run)
    }
    start().catch(onError)
    return () => {
      isStopped = true
      job?.stop()
    }
  },
}
