import { describe, expect, it } from 'vitest'
import type { Statement } from 'svc/sdk'
import { Refusal } from 'svc/sdk'
import { Settings } from '../../../plugins/queue/config.ts'
import type { Job, JobOutcome, NewJob } from '../../../plugins/queue/contract.ts'
import { migrations } from '../../../plugins/queue/migrations.ts'
import { DatabaseQueue } from '../../../plugins/queue/service.ts'
import { JobStore } from '../../../plugins/queue/store.ts'
import type { Database } from '../../../core/storage/database.ts'
import { parse } from '../../../core/schema/parse.ts'
import { engines, open } from '../../core/storage/engines.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { eventually } from '../../support/eventually.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

interface Options {
  readonly settings?: Record<string, unknown>
  readonly owner?: string
  readonly clock?: ManualClock
  readonly isReloaded?: boolean
}
/** One daemon of those on a database. `crash` forgets it as a killed process would. */
function startQueue(database: Database, options: Options = {}) {
  const clock = options.clock ?? new ManualClock()
  const outcomes: string[] = []
  const pending = new Set<Promise<void>>()
  let isDead = false
  const store = new JobStore(database.sql)
  const queue = new DatabaseQueue({
    store,
    settings: parse(Settings, options.settings ?? {}),
    owner: options.owner ?? 'this home',
    clock: {
      now: () => clock.now(),
      after: (ms, run) => clock.after(ms, () => void (isDead || run())),
    },
    random: () => 1,
    log,
    background(work) {
      if (isDead) return
      const running = work().catch(() => {})
      pending.add(running)
      void running.finally(() => pending.delete(running))
    },
    counted: (lane, outcome) => outcomes.push(`${lane} ${outcome}`),
  })
  const every = (ms: number, run: () => void): void => {
    clock.after(ms, () => {
      if (isDead) return
      run()
      every(ms, run)
    })
  }
  return {
    queue,
    store,
    clock,
    outcomes,
    begin() {
      queue.begin(options.isReloaded ?? false)
      every(5_000, () => queue.poll())
      every(20_000, () => void queue.renew())
    },
    crash: () => void (isDead = true),
    add: (job: NewJob, ...more: readonly Statement[]) => database.sql.batch([queue.add(job), ...more]),
    state: async (id: string) => (await queue.find('work', id))?.state,
  }
}
const job = (id: string, more: Partial<NewJob> = {}): NewJob => ({ lane: 'work', id, payload: { n: id }, ...more })
const done = (): Promise<JobOutcome> => Promise.resolve({ outcome: 'done' })
const rejectOnAbort = ({ signal }: Job): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

describe.each(engines)('the queue on %s', (engine) => {
  const start = async (options?: Options) => {
    const { database } = await open(engine)
    await database.migrate('queue', migrations)
    return { database, ...startQueue(database, options) }
  }

  it('runs each job once, however often it is added, in the order in which they are due', async () => {
    const { add, queue, begin, state, clock } = await start({ settings: { default_concurrency: 1 } })
    const ran: unknown[] = []
    queue.work('work', {
      run({ id, payload }) {
        ran.push([id, payload])
        return done()
      },
    })
    await add(job('late', { dueAt: clock.now() + 2_000 }))
    await add(job('b', { dueAt: clock.now() - 1 }))
    await add(job('a'))
    await add(job('a', { payload: 'other' }))
    begin()
    await eventually(async () => expect(await state('a')).toBe('done'))
    expect(ran).toEqual([
      ['b', { n: 'b' }],
      ['a', { n: 'a' }],
    ])
    expect(await state('late')).toBe('pending')
    await eventually(() => expect(clock.waiting).toBe(3))
    clock.advance(2_000)
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
    const { add, queue, begin, state, clock, outcomes, database } = await start({ settings: { max_failures: 3 } })
    let failures = 0
    queue.work('work', {
      run({ failures: earlier }) {
        expect(earlier).toBe(failures++)
        return Promise.reject(new Refusal('rate_limit', 'not now', failures === 1 ? { retryAfterSecs: 60 } : {}))
      },
      dead: ({ id }, reason) => [queue.add(job('after', { payload: [id, reason], dueAt: clock.now() + 1e9 }))],
    })
    await add(job('a'))
    begin()
    await eventually(() => expect(outcomes).toEqual(['work failed']))
    await eventually(() => expect(clock.waiting).toBe(3))
    clock.advance(59_000)
    await eventually(() => expect(clock.waiting).toBe(3))
    expect(failures).toBe(1)
    clock.advance(1_000)
    await eventually(() => expect(failures).toBe(2))
    await eventually(async () => {
      clock.advance(2_000)
      expect(await state('a')).toBe('dead')
    })
    expect(outcomes).toEqual(['work failed', 'work failed', 'work dead'])
    expect((await new JobStore(database.sql).find('work', 'after'))?.payload).toBe('["a","not now"]')
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

  it('goes on after a crash: at once on the same home, after the lease in another daemon', async () => {
    const { add, queue, begin, state, crash, clock, database } = await start({ settings: { lease_secs: 60 } })
    queue.work('work', { run: () => new Promise(() => {}) })
    await add(job('a'))
    begin()
    await eventually(async () => expect(await state('a')).toBe('running'))
    crash()
    const other = startQueue(database, { owner: 'another home', clock })
    const losses: number[] = []
    other.queue.work('work', {
      run({ losses: lost }) {
        losses.push(lost)
        return new Promise(() => {})
      },
    })
    other.begin()
    await eventually(() => expect(clock.waiting).toBeGreaterThan(1))
    expect(losses).toEqual([])
    // Its own renewals, a third of a lease apart, find that the lease has ended.
    await eventually(() => {
      clock.advance(20_000)
      expect(losses).toEqual([1])
    })
    other.crash()
    const again = startQueue(database, { owner: 'another home', clock })
    again.queue.work('work', { run: done })
    again.begin()
    await eventually(async () => expect(await state('a')).toBe('done'))
    expect(await again.queue.find('work', 'a')).toMatchObject({ losses: 2, failures: 0 })
    await again.queue.close()
  })

  it('gives up a job that ends its daemon each time', async () => {
    const { database, add, store } = await start()
    await add(job('poison'))
    for (let crashes = 0; crashes < 3; crashes++) {
      const one = startQueue(database, { settings: { max_losses: 3 } })
      const started = Promise.withResolvers<void>()
      one.queue.work('work', {
        run() {
          started.resolve()
          return new Promise(() => {})
        },
      })
      one.begin()
      await started.promise
      one.crash()
    }
    const last = startQueue(database, { settings: { max_losses: 3 } })
    last.queue.work('work', { run: done, dead: () => [last.queue.add(job('told', { lane: 'elsewhere' }))] })
    last.begin()
    await eventually(async () => expect(await last.state('poison')).toBe('dead'))
    expect(await store.find('elsewhere', 'told')).toBeDefined()
    await last.queue.close()
  })

  it('is never given to two daemons', async () => {
    const { database, add } = await start()
    const ran: string[] = []
    const daemons = ['one', 'two', 'three'].map((owner) => startQueue(database, { owner }))
    for (const { queue } of daemons)
      queue.work('work', {
        run({ id }) {
          ran.push(id)
          return done()
        },
      })
    for (let n = 0; n < 30; n++) await add(job(`${n}`, n % 3 === 0 ? { group: 'g' } : {}))
    for (const { begin } of daemons) begin()
    await eventually(() => {
      for (const { clock } of daemons) clock.advance(5_000)
      expect(ran).toHaveLength(30)
    })
    expect(new Set(ran).size).toBe(30)
    await Promise.all(daemons.map(({ queue }) => queue.close()))
  })

  it('says when it is full, and forgets what ended long ago', async () => {
    const { add, queue, begin, clock, state } = await start({
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
    clock.advance(2 * 3_600_000)
    await queue.deleteOld()
    expect(await queue.find('work', 'c')).toMatchObject({ error: 'no use' })
    clock.advance(30 * 3_600_000)
    await queue.deleteOld()
    expect(await state('c')).toBeUndefined()
    await queue.close()
  })
})
