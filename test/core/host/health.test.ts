import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { HealthMonitor } from '../../../core/host/health.ts'
import { createLog } from '../../../core/log/log.ts'

describe('the health of the daemon', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  const bench = () => {
    const lines: string[] = []
    const state = { answer: async (): Promise<boolean> => true, panics: 0 }
    const monitor = new HealthMonitor({
      check: () => state.answer(),
      panicCount: () => state.panics,
      restartCount: 3,
      warnings: () => ['a warning'],
      log: createLog({
        write: (line) => {
          lines.push(line)
        },
      }),
    })
    return { monitor, state, lines }
  }

  it('is degraded within five seconds of the database failing, and ok again when it answers', async () => {
    const { monitor, state, lines } = bench()
    expect(monitor.health()).toMatchObject({ status: 'ok', database: 'connected', restartCount: 3 })
    expect(monitor.warnings()).toEqual(['a warning'])
    state.answer = async () => false
    await vi.advanceTimersByTimeAsync(5_000)
    expect(monitor.health()).toMatchObject({ status: 'degraded', database: 'error' })
    state.answer = async () => {
      throw new Error('gone')
    }
    await vi.advanceTimersByTimeAsync(5_000)
    expect(monitor.health().status).toBe('degraded')
    state.answer = async () => true
    await vi.advanceTimersByTimeAsync(5_000)
    expect(monitor.health().status).toBe('ok')
    expect(lines.map((line) => /the database.*/.exec(line)?.[0])).toEqual([
      'the database does not answer',
      'the database answers again',
    ])
  })

  it('does not ask again while an answer is outstanding, and is degraded meanwhile', async () => {
    const { monitor, state } = bench()
    let asked = 0
    state.answer = () => {
      asked++
      return new Promise(() => undefined)
    }
    await vi.advanceTimersByTimeAsync(60_000)
    expect(asked).toBe(1)
    expect(monitor.health().status).toBe('degraded')
    monitor[Symbol.dispose]()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('waits for an answer that takes a moment, as while a table is locked', async () => {
    const { monitor, state, lines } = bench()
    const answer = Promise.withResolvers<boolean>()
    state.answer = () => answer.promise
    await vi.advanceTimersByTimeAsync(13_000)
    expect(monitor.health()).toMatchObject({ status: 'ok', database: 'connected' })
    answer.resolve(true)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(lines).toEqual([])
    monitor[Symbol.dispose]()
  })

  it('counts panics and the seconds since the start', async () => {
    const { monitor, state } = bench()
    state.panics++
    await vi.advanceTimersByTimeAsync(61_000)
    expect(monitor.health()).toMatchObject({ panicCount: 1, uptimeSecs: 61 })
  })
})
