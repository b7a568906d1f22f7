import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { HealthMonitor } from '../../../core/host/health.ts'
import { createLog } from '../../../core/log/log.ts'
import { ServerAway } from '../../../core/storage/failure.ts'

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
    const log = createLog({
      colored: false,
      write: (line) => {
        lines.push(line)
      },
    })
    const monitor = new HealthMonitor({
      check: () => state.answer(),
      panicCount: () => state.panics,
      restartCount: 3,
      warnings: () => ['a warning'],
      log,
    })
    return { monitor, state, lines, log }
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

  it('is told once when the server goes away and once when it is back, with how many lines on it were left out', async () => {
    const { monitor, state, lines, log } = bench()
    log.setKnown((part) => monitor.isKnown(part))
    const away = new ServerAway('The database server does not answer', new Error('ECONNREFUSED'))
    state.answer = async () => false
    log.warn('a first job failed', away)
    // It was checked at once.
    await vi.advanceTimersByTimeAsync(0)
    for (let n = 0; n < 3; n++) {
      log.error('a job failed', away)
      log.withTag('queue').error('pg-boss failed', new Error('no job', { cause: away }))
      log.warn('a job failed', { error: away })
      log.warn(`a lane could not be begun: ${away.message}`)
    }
    log.warn('something else failed', new Error('for a reason of its own'))
    state.answer = async () => true
    await monitor.check()
    log.warn('and goes on', away)
    expect(lines.map((line) => line.replace(/^\S+ \w+ +/, '').split('\n')[0])).toEqual([
      expect.stringContaining('a first job failed'),
      'the database does not answer',
      'something else failed for a reason of its own',
      'the database answers again; 12 lines on what failed meanwhile were left out',
      expect.stringContaining('and goes on'),
    ])
    monitor[Symbol.dispose]()
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
