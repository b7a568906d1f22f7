/** When the jobs of plugins run. Ends with the function it returns. */
export interface JobTimer {
  every(ms: number, run: () => Promise<void>): () => void
  /** `onError` is told of an expression that cannot be read. */
  cron(expression: string, run: () => Promise<void>, onError: (error: unknown) => void): () => void
}

/** By the clock of the machine. */
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
