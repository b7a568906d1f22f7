import { describe, expect, it } from 'vitest'
import { ServerAway } from 'svc/internal'
import { OutcomeUnknown } from '../../../plugins/workflows/contract.ts'
import type { StepType } from '../../../plugins/workflows/contract.ts'
import { OUTPUT, prepare, recorder, RUN, startEngine, step, steps } from './engine-stage.ts'

describe('a process that is killed', () => {
  it.each([false, true])(
    'at any write (made: %s): the next one goes on from the last finished step, and repeats none',
    async (isDone) => {
      for (let at = 0; ; at++) {
        await using database = await prepare(steps)
        const before = recorder()
        const first = startEngine(database, before.act, { at, isDone })
        const outcome = await first.work().catch((error: unknown) => error)
        if (!first.died()) {
          expect(at).toBeGreaterThan(15)
          expect(outcome).toEqual({ outcome: 'done' })
          return
        }
        const after = recorder()
        const second = startEngine(database, after.act)
        const finished = (await second.store.attempts(RUN)).filter(({ ended_at: end }) => end !== null)
        expect(await second.work()).toEqual({ outcome: 'done' })
        expect(await second.store.find(RUN)).toMatchObject({ state: 'Completed', output: OUTPUT, steps_completed: 7 })
        // What was finished is not called again; what was begun is told that it may have acted.
        const again = after.calls.filter(({ key }) => finished.some((each) => each.key === key))
        expect([at, again]).toEqual([at, []])
        const begun = new Set(before.calls.map(({ key }) => key))
        for (const call of after.calls)
          if (begun.has(call.key)) expect([at, call.step, call.wasCutOff]).toEqual([at, call.step, true])
      }
    },
  )

  it('at any write of a run that fails: the next one fails it with the same reason, and begins nothing after it', async () => {
    const failing = [step('good'), step('bad'), step('never')]
    const act: StepType['run'] = ({ step: name }) =>
      name === 'bad' ? Promise.reject(new Error('broken')) : Promise.resolve({ outcome: 'done', output: name })
    for (let at = 0, died = true; died; at++) {
      await using database = await prepare(failing)
      const first = startEngine(database, act, { at, isDone: at % 2 === 0 })
      await first.work().catch(() => undefined)
      died = first.died()
      const second = startEngine(database, act)
      expect(await second.work()).toEqual({ outcome: 'done' })
      const error = 'step "bad" failed: broken'
      expect([at, await second.store.find(RUN)]).toMatchObject([at, { state: 'Failed', error, steps_completed: 1 }])
      expect((await second.store.attempts(RUN)).map(({ step: name, state }) => [name, state])).toEqual([
        ['good', 'completed'],
        ['bad', 'failed'],
      ])
    }
  })

  it('while a retry waits: the next one waits only for what is left of the pause, and counts the attempts on', async () => {
    await using database = await prepare([step('flaky', { errorMode: 'retry', maxRetries: 2, retryDelaySecs: 10 })])
    const attempts: number[] = []
    const act: StepType['run'] = ({ attempt }) => {
      attempts.push(attempt)
      return attempt < 3 ? Promise.reject(new Error('not yet')) : Promise.resolve({ outcome: 'done', output: 'ok' })
    }
    expect(await startEngine(database, act).work()).toEqual({ outcome: 'postponed', afterMs: 10_000 })
    const next = startEngine(database, act)
    next.clock.advance(4_000)
    expect(await next.work()).toEqual({ outcome: 'postponed', afterMs: 6_000 })
    next.clock.advance(6_000)
    expect(await next.work()).toEqual({ outcome: 'postponed', afterMs: 20_000 })
    next.clock.advance(20_000)
    expect(await next.work()).toEqual({ outcome: 'done' })
    expect(attempts).toEqual([1, 2, 3])
    expect(await next.store.find(RUN)).toMatchObject({ state: 'Completed', output: 'ok' })
  })
})

it('fan-out steps run at the same time, and a loop ends by its text in any case', async () => {
  const loop = step('twice', { mode: 'loop', maxIterations: 9, until: 'DONE' })
  await using database = await prepare([step('a', { mode: 'fan_out' }), step('b', { mode: 'fan_out' }), loop])
  const both = Promise.withResolvers<void>()
  const begun: string[] = []
  const { work, store } = startEngine(database, async ({ step: name, input }) => {
    begun.push(name)
    if (begun.length === 2) both.resolve()
    await both.promise
    return { outcome: 'done', output: name.endsWith('2)') ? `${input} done` : name }
  })
  expect(await work()).toEqual({ outcome: 'done' })
  expect(begun).toEqual(['a', 'b', 'twice (iter 1)', 'twice (iter 2)'])
  expect(await store.find(RUN)).toMatchObject({ output: 'twice (iter 1) done' })
})

it('a step that fails ends the run at once, and one beside it that waits for something is cancelled', async () => {
  await using database = await prepare([step('waits', { mode: 'fan_out' }), step('fails', { mode: 'fan_out' })])
  const { work, store } = startEngine(database, ({ step: name }) =>
    name === 'fails' ? Promise.reject(new Error('broken')) : Promise.resolve({ outcome: 'waiting', state: null }),
  )
  expect(await work()).toEqual({ outcome: 'done' })
  expect((await store.attempts(RUN)).map(({ state }) => state)).toEqual(['cancelled', 'failed'])
})

it('a step that may have acted is not tried again, whatever its error mode says', async () => {
  await using database = await prepare([step('pay', { errorMode: 'retry', maxRetries: 3 })])
  const { work, store } = startEngine(database, () => Promise.reject(new OutcomeUnknown('it may have arrived')))
  expect(await work()).toEqual({ outcome: 'done' })
  expect((await store.attempts(RUN)).map(({ state, error }) => [state, error])).toEqual([
    ['failed', 'it may have arrived'],
  ])
  expect(await store.find(RUN)).toMatchObject({ state: 'Failed' })
})

describe('two daemons on one database', () => {
  it('that have the same run: only the later one records, under the same keys', async () => {
    await using database = await prepare([step('slow'), step('next')])
    const isBegun = Promise.withResolvers<void>()
    const hangs = Promise.withResolvers<void>()
    const keys: string[] = []
    const slow = startEngine(database, async ({ key }) => {
      keys.push(key)
      isBegun.resolve()
      await hangs.promise
      return { outcome: 'done', output: 'late' }
    })
    const working = slow.work().catch((error: unknown) => error)
    await isBegun.promise
    const { calls, act } = recorder()
    expect(await startEngine(database, act).work()).toEqual({ outcome: 'done' })
    hangs.resolve()
    expect(await working).toEqual({ outcome: 'done' })
    expect(calls[0]).toMatchObject({ key: keys[0], wasCutOff: true })
    const { store } = slow
    expect(await store.find(RUN)).toMatchObject({ output: 'next(slow(x))', steps_completed: 2 })
    expect((await store.attempts(RUN)).map(({ output }) => output)).toEqual(['slow(x)', 'next(slow(x))'])
    expect(slow.ended).toEqual([])
  })
})

describe('a run that is paused or cancelled while a step runs', () => {
  it.each(['Paused', 'Cancelled'] as const)('%s: the next step is not begun', async (state) => {
    await using database = await prepare([step('one'), step('two')])
    const { calls, act } = recorder()
    const { work, store } = startEngine(database, async (call) => {
      await store.commit([store.move(RUN, ['Running'], state, 1)])
      return act(call)
    })
    const outcome = await work()
    expect(outcome.outcome).toBe(state === 'Paused' ? 'postponed' : 'done')
    expect(calls.map(({ step: name }) => name)).toEqual(['one'])
    // A paused run keeps what its step did; a cancelled one does not change any more.
    const isKept = state === 'Paused'
    expect(await store.find(RUN)).toMatchObject({ state, steps_completed: isKept ? 1 : 0, step_index: isKept ? 1 : 0 })
    expect(await work()).toEqual(outcome)
    expect(calls).toHaveLength(1)
  })
})

describe('time', () => {
  it('a retry waits without holding anything, twice as long each time', async () => {
    await using database = await prepare([step('flaky', { errorMode: 'retry', maxRetries: 2, retryDelaySecs: 2 })])
    const { work, store, clock } = startEngine(database, () => Promise.reject(new Error('not yet')))
    expect(await work()).toEqual({ outcome: 'postponed', afterMs: 2_000 })
    clock.advance(2_000)
    expect(await work()).toEqual({ outcome: 'postponed', afterMs: 4_000 })
    clock.advance(3_999)
    expect(await work()).toEqual({ outcome: 'postponed', afterMs: 1 })
    clock.advance(1)
    expect(await work()).toEqual({ outcome: 'done' })
    expect(await store.find(RUN)).toMatchObject({ state: 'Failed', error: 'step "flaky" failed: not yet' })
    expect(await store.attempts(RUN)).toHaveLength(3)
  })

  it('of an attempt that is over counts as a failure, and each attempt has all of it', async () => {
    await using database = await prepare([step('slow', { errorMode: 'retry', maxRetries: 1 }), step('next')])
    const { work, store, clock } = startEngine(database, () => {
      queueMicrotask(() => clock.advance(60_000))
      return new Promise(() => {})
    })
    expect(await work()).toEqual({ outcome: 'done' })
    const error = 'step "slow" failed: it took longer than 60 seconds'
    expect(await store.find(RUN)).toMatchObject({ state: 'Failed', error, worked_ms: 120_000 })
    expect((await store.attempts(RUN)).map(({ state }) => state)).toEqual(['failed', 'failed'])
  })

  it('that a run may work is not the time that it waits', async () => {
    await using database = await prepare([step('wait'), step('slow'), step('late')])
    const hour = 3_600_000
    const { calls, act } = recorder()
    const { work, store, clock } = startEngine(database, (call) => {
      if (call.step === 'wait' && call.state === undefined)
        return Promise.resolve({ outcome: 'waiting', state: 1, untilMs: clock.now() + 5 * hour })
      const result = act(call)
      if (call.step === 'slow') clock.advance(hour)
      return result
    })
    expect(await work()).toEqual({ outcome: 'postponed', afterMs: 5 * hour })
    clock.advance(5 * hour)
    expect(await work()).toEqual({ outcome: 'done' })
    expect(calls.map(({ step: name }) => name)).toEqual(['wait', 'slow'])
    const error = 'the run worked longer than the 3600 seconds that its workflow may'
    expect(await store.find(RUN)).toMatchObject({ state: 'Failed', error })
  })
})

it('steps side by side that end and fail at the same moment are all counted', async () => {
  for (let later = 0; later < 30; later++) {
    await using database = await prepare([
      step('left', { mode: 'fan_out' }),
      step('right', { mode: 'fan_out', errorMode: 'retry' }),
    ])
    const { work, store } = startEngine(database, async ({ step: name, attempt }) => {
      if (name === 'left' || attempt > 1) return { outcome: 'done', output: name }
      for (let turns = 0; turns < later; turns++) await Promise.resolve()
      throw new Error('not yet')
    })
    expect(await work()).toEqual({ outcome: 'done' })
    expect(await store.find(RUN)).toMatchObject({ state: 'Completed', steps_completed: 2 })
  }
})

it('a step for which the database was away is made again under its key, and fails nothing', async () => {
  const database = await prepare([step('only', { errorMode: 'fail' })])
  const keys: string[] = []
  const act: StepType['run'] = ({ key, input }) => {
    keys.push(key)
    if (keys.length < 3) return Promise.reject(new ServerAway('away', new Error('gone')))
    return Promise.resolve({ outcome: 'done', output: input })
  }
  const { work, ended } = startEngine(database, act)
  for (let times = 0; times < 2; times++) expect((await work()).outcome).toBe('postponed')
  expect((await work()).outcome).toBe('done')
  expect(ended).toEqual(['Completed'])
  expect(new Set(keys).size).toBe(1)
})
