import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createJobs } from '../../../core/jobs/jobs.ts'
import { Scope } from '../../../core/scope/scope.ts'

describe('a job', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: new Date('2026-01-01T00:00:30Z') })
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  const bench = () => {
    const defects: string[] = []
    const scope = new Scope('one')
    return {
      scope,
      defects,
      jobs: createJobs(scope, (_error, where) => {
        defects.push(where)
      }),
    }
  }

  it('runs every so often, with the signal of its plugin', async () => {
    const { jobs, scope } = bench()
    const signals: AbortSignal[] = []
    jobs.every('sweep', 1000, async (signal) => {
      signals.push(signal)
    })
    await vi.advanceTimersByTimeAsync(3000)
    expect(signals).toEqual([scope.signal, scope.signal, scope.signal])
  })

  it('never overlaps with itself', async () => {
    const { jobs } = bench()
    let runs = 0
    const { promise, resolve } = Promise.withResolvers<void>()
    jobs.every('sweep', 1000, async () => {
      runs++
      await promise
    })
    await vi.advanceTimersByTimeAsync(5000)
    expect(runs).toBe(1)
    resolve()
    await vi.advanceTimersByTimeAsync(1000)
    expect(runs).toBe(2)
  })

  it('runs again after a failure, which is reported with the plugin', async () => {
    const { jobs, defects } = bench()
    jobs.every('sweep', 1000, async () => {
      throw new Error('no')
    })
    await vi.advanceTimersByTimeAsync(2000)
    expect(defects).toEqual(['plugin "one", job sweep', 'plugin "one", job sweep'])
  })

  it('follows a cron expression in UTC', async () => {
    const { jobs } = bench()
    let runs = 0
    jobs.cron('hourly', '1 * * * *', async () => {
      runs++
    })
    await vi.dynamicImportSettled()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(runs).toBe(1)
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(runs).toBe(2)
  })

  it('with a wrong expression is reported', async () => {
    const { jobs, defects } = bench()
    jobs.cron('never', 'every day', async () => undefined)
    await vi.dynamicImportSettled()
    await vi.advanceTimersByTimeAsync(0)
    expect(defects).toEqual(['plugin "one", job never: "every day"'])
  })

  it('ends with its plugin', async () => {
    const { jobs, scope } = bench()
    let runs = 0
    jobs.every('sweep', 1000, async () => {
      runs++
    })
    jobs.cron('minutely', '* * * * *', async () => {
      runs++
    })
    await vi.dynamicImportSettled()
    await scope.close(0)
    await vi.advanceTimersByTimeAsync(120_000)
    expect(runs).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })
})
