import { describe, expect, it } from 'vitest'
import { ServerAway } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { eventually } from '../../support/eventually.ts'
import { done, job, rejectOnAbort, Stage, stages } from './stage.ts'
import type { Options } from './stage.ts'

const HOUR_MS = 3_600_000

describe.each(stages)('the queue, %s', (name) => {
  const start = async (options?: Options) => {
    const stage = await Stage.open(name)
    return { stage, ...(await stage.start(options)) }
  }

  it('runs each job once, however often it is added, in the order in which they are due', async () => {
    const { add, queue, begin, state, stage } = await start({ settings: { default_concurrency: 1 } })
    const ran: unknown[] = []
    queue.work('work', {
      run({ id, payload }) {
        ran.push([id, payload])
        return done()
      },
    })
    await add(job('late', { dueAt: stage.now() + HOUR_MS }))
    await add(job('b', { dueAt: stage.now() - 1 }))
    await add(job('a'))
    await add(job('a', { payload: 'other' }))
    begin()
    await eventually(async () => expect(await state('a')).toBe('done'))
    expect(ran).toEqual([
      ['b', { n: 'b' }],
      ['a', { n: 'a' }],
    ])
    expect(await state('late')).toBe('pending')
    await eventually(() => expect(stage.clock.waiting).toBeGreaterThanOrEqual(3))
    await stage.pass(HOUR_MS)
    await eventually(async () => expect(await state('late')).toBe('done'))
    await add(job('a'))
    expect(ran).toHaveLength(3)
    await queue.close()
  })

  it('runs a job again that was hurried while its worker decided to wait', async () => {
    const { add, queue, begin, state } = await start()
    const decides = Promise.withResolvers<void>()
    let runs = 0
    queue.work('work', {
      async run() {
        runs++
        if (runs > 1) return { outcome: 'done' }
        await decides.promise
        return { outcome: 'postponed', afterMs: 86_400_000 }
      },
    })
    await add(job('a'))
    begin()
    await eventually(async () => expect(await state('a')).toBe('running'))
    expect(await queue.hurry('work', 'a')).toBe(true)
    decides.resolve()
    await eventually(async () => expect(await state('a')).toBe('done'))
    expect(runs).toBe(2)
  })

  it('runs as many side by side as the lane may, and one of a group', async () => {
    const { add, queue, begin } = await start({ settings: { concurrency: { work: 3 } } })
    const running = new Map<string, () => void>()
    const ran: string[] = []
    queue.work('work', {
      async run({ id }) {
        const { promise, resolve } = Promise.withResolvers<void>()
        running.set(id, resolve)
        await promise
        running.delete(id)
        ran.push(id)
        return { outcome: 'done' }
      },
    })
    for (const id of ['g1', 'g2', 'x', 'y', 'z']) await add(job(id, id.startsWith('g') ? { group: 'g' } : {}))
    begin()
    await eventually(() => expect([...running.keys()].toSorted()).toEqual(['g1', 'x', 'y']))
    running.get('g1')?.()
    await eventually(() => expect([...running.keys()].toSorted()).toEqual(['g2', 'x', 'y']))
    for (const id of ['g2', 'x', 'y']) running.get(id)?.()
    await eventually(() => expect([...running.keys()]).toEqual(['z']))
    running.get('z')?.()
    await eventually(() => expect(ran.toSorted()).toEqual(['g1', 'g2', 'x', 'y', 'z']))
    await queue.close()
  })

  it('tries what failed again after a pause, as often as it may, and tells its plugin of the end', async () => {
    const { add, queue, begin, state, stage, outcomes, driver } = await start({
      settings: { max_failures: 3, lease_secs: 3_600 },
    })
    let failures = 0
    queue.work('work', {
      run({ failures: earlier }) {
        expect(earlier).toBe(failures++)
        return Promise.reject(new Refusal('rate_limit', 'not now', failures === 1 ? { retryAfterSecs: 3_600 } : {}))
      },
      dead: ({ id }, reason) => [queue.add(job('after', { payload: [id, reason], dueAt: stage.now() + 1e9 }))],
    })
    await add(job('a'))
    begin()
    await eventually(() => expect(outcomes).toEqual(['work failed']))
    expect(await queue.find('work', 'a')).toMatchObject({ state: 'pending', failures: 1, error: 'not now' })
    await eventually(() => expect(stage.clock.waiting).toBeGreaterThanOrEqual(3))
    await stage.pass(HOUR_MS / 2)
    await eventually(() => expect(stage.clock.waiting).toBeGreaterThanOrEqual(3))
    expect(failures).toBe(1)
    await eventually(async () => {
      await stage.pass(HOUR_MS / 2)
      expect(await state('a')).toBe('dead')
    })
    expect(outcomes).toEqual(['work failed', 'work failed', 'work dead'])
    expect(await queue.find('work', 'a')).toMatchObject({ failures: 3, error: 'not now' })
    expect((await queue.list('work', 'dead', 10, 0)).map(({ id }) => id)).toEqual(['a'])
    expect((await driver.find('work', 'after'))?.payload).toBe('["a","not now"]')
    await queue.close()
  })

  it('does not count attempts for which the database was away', async () => {
    const { add, queue, begin, rest, state, stage } = await start({ settings: { max_failures: 2 } })
    let runs = 0
    queue.work('work', {
      run: () =>
        ++runs > 3 ? Promise.resolve({ outcome: 'done' }) : Promise.reject(new ServerAway('away', new Error('gone'))),
    })
    await add(job('a'))
    begin()
    await eventually(async () => {
      // An attempt whose lease ends before it is recorded is made again.
      await rest()
      await stage.pass(HOUR_MS / 2)
      await rest()
      expect(await state('a')).toBe('done')
    })
    expect([runs, (await queue.find('work', 'a'))?.failures]).toEqual([4, 0])
    await queue.close()
  })

  it('does not record what an attempt did whose job was cancelled, and aborts it', async () => {
    const { add, queue, begin, state } = await start()
    const running = Promise.withResolvers<void>()
    const aborted = Promise.withResolvers<void>()
    queue.work('work', {
      async run({ signal }) {
        running.resolve()
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
        aborted.resolve()
        return { outcome: 'done', statements: [queue.add(job('result'))] }
      },
    })
    await add(job('a'))
    begin()
    await running.promise
    expect(await queue.cancel('work', 'a')).toBe(true)
    await aborted.promise
    await queue.close()
    expect(await state('a')).toBe('cancelled')
    expect(await state('result')).toBeUndefined()
    expect(await queue.cancel('work', 'a')).toBe(false)
  })

  it('gives a job back when its worker is removed, which is neither a failure nor a loss', async () => {
    const { add, queue, begin, state } = await start()
    const remove = queue.work('work', { run: rejectOnAbort })
    await add(job('a'))
    begin()
    await eventually(async () => expect(await state('a')).toBe('running'))
    await remove()
    expect(await queue.find('work', 'a')).toMatchObject({ state: 'pending', failures: 0, losses: 0 })
    queue.work('work', { run: done })
    await eventually(async () => expect(await state('a')).toBe('done'))
    await queue.close()
  })

  it('goes on after a crash: at once on the same home where that is known, after the lease in another daemon', async () => {
    const { add, queue, begin, state, crash, stage } = await start({ settings: { lease_secs: 60 } })
    queue.work('work', { run: () => new Promise(() => {}) })
    await add(job('a'))
    begin()
    await eventually(async () => expect(await state('a')).toBe('running'))
    await crash()
    const other = await stage.start({ owner: 'another home' })
    const losses: number[] = []
    other.queue.work('work', {
      run({ losses: lost }) {
        losses.push(lost)
        return new Promise(() => {})
      },
    })
    other.begin()
    await eventually(() => expect(stage.clock.waiting).toBeGreaterThan(1))
    expect(losses).toEqual([])
    // Its own renewals, a third of a lease apart, find that the lease has ended.
    await eventually(async () => {
      await stage.pass(20_000)
      expect(losses).toEqual([1])
    })
    expect(other.outcomes).toEqual(['work lost'])
    await other.crash()
    const again = await stage.start({ owner: 'another home' })
    again.queue.work('work', { run: done })
    again.begin()
    await eventually(async () => {
      if (stage.name === 'pg-boss') await stage.pass(20_000)
      expect(await state('a')).toBe('done')
    })
    expect(await again.queue.find('work', 'a')).toMatchObject({ losses: 2, failures: 0 })
    await again.queue.close()
  })

  it('commits nothing of a worker whose lease ended while it went on', async () => {
    const { add, queue, begin, state, stage } = await start()
    const release = Promise.withResolvers<void>()
    queue.work('work', {
      async run() {
        await release.promise
        return { outcome: 'done', statements: [queue.add(job('late result', { lane: 'results' }))] }
      },
    })
    await add(job('a'))
    begin()
    await eventually(async () => expect(await state('a')).toBe('running'))
    // It is paused: its timers do not run, while another daemon goes on.
    const other = await stage.start({ owner: 'another home' })
    const started = Promise.withResolvers<void>()
    const proceed = Promise.withResolvers<void>()
    other.queue.work('work', {
      async run() {
        started.resolve()
        await proceed.promise
        return { outcome: 'done', statements: [other.queue.add(job('result', { lane: 'results' }))] }
      },
    })
    await stage.age(120_000)
    await eventually(async () => {
      await other.driver.takeOver(false)
      expect(await state('a')).toBe('pending')
    })
    other.begin()
    await started.promise
    release.resolve()
    await queue.close()
    expect(await other.queue.find('results', 'late result')).toBeUndefined()
    proceed.resolve()
    await eventually(async () => expect(await other.state('a')).toBe('done'))
    expect(await other.queue.find('results', 'result')).toBeDefined()
    expect(await other.queue.find('results', 'late result')).toBeUndefined()
  })

  it('keeps the lease of what runs for long', async () => {
    const { add, queue, begin, state, stage, outcomes } = await start()
    const ends = Promise.withResolvers<void>()
    let signal: AbortSignal | undefined
    queue.work('work', {
      async run(given) {
        signal = given.signal
        await ends.promise
        return { outcome: 'done' }
      },
    })
    await add(job('a'))
    begin()
    await eventually(async () => expect(await state('a')).toBe('running'))
    for (let third = 0; third < 6; third++) {
      await stage.age(20_000)
      await queue.renew()
    }
    ends.resolve()
    await eventually(async () => expect(await state('a')).toBe('done'))
    expect(signal?.aborted).toBe(false)
    expect(outcomes).toEqual(['work done'])
  })

  it('gives up a job that ends its daemon each time', async () => {
    const { add, stage } = await start()
    await add(job('poison'))
    for (let crashes = 0; crashes < 3; crashes++) {
      const one = await stage.start({ settings: { max_losses: 3 } })
      const started = Promise.withResolvers<void>()
      one.queue.work('work', {
        run() {
          started.resolve()
          return new Promise(() => {})
        },
      })
      one.begin()
      await started.promise
      await one.crash()
      await stage.age(120_000)
    }
    const last = await stage.start({ settings: { max_losses: 3 } })
    last.queue.work('work', { run: done, dead: () => [last.queue.add(job('told', { lane: 'elsewhere' }))] })
    last.begin()
    await eventually(async () => expect(await last.state('poison')).toBe('dead'))
    expect(await last.queue.find('elsewhere', 'told')).toBeDefined()
    expect(await last.queue.find('work', 'poison')).toMatchObject({ losses: 3 })
    expect(last.outcomes).toEqual(['work lost', 'work dead'])
  })

  it('is never given to two daemons', async () => {
    const { add, stage } = await start()
    const ran: string[] = []
    let ofGroup = 0
    let mostOfGroup = 0
    const daemons = await Promise.all(['one', 'two', 'three'].map((owner) => stage.start({ owner })))
    for (const { queue } of daemons)
      queue.work('work', {
        async run({ id }) {
          const isGrouped = Number(id) % 3 === 0
          if (isGrouped) mostOfGroup = Math.max(mostOfGroup, ++ofGroup)
          // Long enough for every daemon to claim another one.
          for (const { driver } of daemons) await driver.pending()
          if (isGrouped) ofGroup--
          ran.push(id)
          return { outcome: 'done' }
        },
      })
    for (let n = 0; n < 30; n++) await add(job(`${n}`, n % 3 === 0 ? { group: 'g' } : {}))
    for (const { begin } of daemons) begin()
    await eventually(() => {
      stage.clock.advance(5_000)
      expect(ran).toHaveLength(30)
    })
    expect(new Set(ran).size).toBe(30)
    expect(mostOfGroup).toBe(1)
    const grouped = ran.filter((id) => Number(id) % 3 === 0).map(Number)
    expect(grouped).toEqual(grouped.toSorted((a, b) => a - b))
  })

  it('says when it is full, and forgets what ended long ago', async () => {
    const { add, queue, begin, stage, state } = await start({
      settings: { max_depth: 3, max_depth_per_agent: 2, retention_hours: 1 },
    })
    await add(job('a', { agentId: 'x' }))
    await queue.admit('x')
    await add(job('b', { agentId: 'x' }))
    await expect(queue.admit('x')).rejects.toThrow('plugins.queue.max_depth_per_agent')
    await queue.admit()
    await add(job('c'))
    await expect(queue.admit()).rejects.toThrow('plugins.queue.max_depth allows')
    queue.work('work', { run: () => Promise.resolve({ outcome: 'dead', reason: 'no use' }) })
    begin()
    await eventually(async () => expect(await state('c')).toBe('dead'))
    await stage.age(2 * HOUR_MS)
    await queue.deleteOld()
    expect(await queue.find('work', 'c')).toMatchObject({ error: 'no use' })
    await stage.age(30 * HOUR_MS)
    await queue.deleteOld()
    expect(await state('c')).toBeUndefined()
  })

  it('runs what was dead or cancelled again, with the statements of who asked', async () => {
    const { add, queue, begin, state } = await start({ settings: { max_failures: 1 } })
    let isBroken = true
    queue.work('work', { run: () => (isBroken ? Promise.reject(new Error('broken')) : done()) })
    await add(job('a'))
    begin()
    await eventually(async () => expect(await state('a')).toBe('dead'))
    await add(job('later', { dueAt: Date.now() + 1e12 }))
    expect(await queue.cancel('work', 'later')).toBe(true)
    isBroken = false
    await queue.retry('work', 'a', [queue.add(job('trace', { lane: 'elsewhere' }))])
    await queue.retry('work', 'later', [])
    await eventually(async () => expect([await state('a'), await state('later')]).toEqual(['done', 'done']))
    expect(await queue.find('work', 'a')).toMatchObject({ failures: 0, losses: 0 })
    expect(await queue.find('elsewhere', 'trace')).toBeDefined()
  })

  it('adds nothing of a batch that fails, and takes any text', async () => {
    const { add, queue, begin, state, stage } = await start()
    const { sql } = stage.database
    await expect(add(job('a'), sql.sql`INSERT INTO nowhere (id) VALUES (1)`)).rejects.toThrow(/nowhere/)
    expect(await state('a')).toBeUndefined()
    const odd = { text: 'a\0b \ud800 "quoted" \\u0000 ✓', number: 1e21, list: [null, 0.1] }
    const received: unknown[] = []
    queue.work('work', {
      run({ payload }) {
        received.push(payload)
        return done()
      },
    })
    await add(job('odd \0 id', { payload: odd, group: 'a\0', agentId: 'b\0' }))
    begin()
    await eventually(async () => expect(await state('odd \0 id')).toBe('done'))
    expect(received).toEqual([odd])
  })

  it('says what waits, runs and has ended, by lane', async () => {
    const { add, queue, begin, stage } = await start({ settings: { concurrency: { work: 1 } } })
    const ends = Promise.withResolvers<void>()
    queue.work('work', {
      async run({ id }) {
        if (id === 'c') await ends.promise
        return id === 'b' ? { outcome: 'dead', reason: 'no use' } : { outcome: 'done' }
      },
    })
    for (const id of ['a', 'b', 'c', 'd']) await add(job(id))
    await add(job('x', { lane: 'idle', dueAt: stage.now() - HOUR_MS }))
    begin()
    await eventually(async () => expect((await queue.find('work', 'c'))?.state).toBe('running'))
    expect(await queue.status()).toMatchObject([
      { lane: 'idle', active: 0, running: 0, waiting: 1, dead: 0, oldestMs: expect.any(Number) },
      {
        lane: 'work',
        active: 1,
        running: 1,
        capacity: 1,
        waiting: 1,
        dead: 1,
        throughput: { done_minute: 1, done_hour: 1, failed_minute: 1, failed_hour: 1 },
      },
    ])
    const [idle] = await queue.status()
    expect(idle?.oldestMs).toBeGreaterThanOrEqual(HOUR_MS)
    expect((await queue.list('work', 'done', 10, 0)).map(({ id }) => id)).toEqual(['a'])
    ends.resolve()
  })
})
