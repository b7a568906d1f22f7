import { createConsola } from 'consola'
import { describe, expect, it } from 'vitest'
import type { Workflow } from '../../../plugins/workflows/definition.ts'
import { DefinitionStore } from '../../../plugins/workflows/definitions/store.ts'
import { FileClaims } from '../../../plugins/workflows/files/store.ts'
import type { StepType } from '../../../plugins/workflows/contract.ts'
import { newRun, OUTPUT, prepare, recorder, RUN, startEngine, step, steps, workflowOf } from './engine-stage.ts'

describe('on PostgreSQL', () => {
  it('a run goes on where a killed process left it, and repeats no finished step', async () => {
    for (const at of [5, 14]) {
      await using database = await prepare(steps, 'postgresql')
      await startEngine(database, recorder().act, { at, isDone: at % 2 === 0 })
        .work()
        .catch(() => undefined)
      const { calls, act } = recorder()
      const { work, store } = startEngine(database, act)
      const attempts = await store.attempts(RUN)
      const finished = new Set(attempts.filter(({ ended_at: end }) => end !== null).map(({ key }) => key))
      expect(await work()).toEqual({ outcome: 'done' })
      expect(await store.find(RUN)).toMatchObject({ state: 'Completed', output: OUTPUT, steps_completed: 7 })
      expect(calls.filter(({ key }) => finished.has(key))).toEqual([])
      expect([...(await store.variables(RUN))]).toEqual([['first', 'first(x)']])
    }
  })

  it('runs wait, are woken, paused, cancelled with their steps, listed and trimmed, and their limit holds', async () => {
    await using database = await prepare(
      [step('wait', { mode: 'fan_out' }), step('other', { mode: 'fan_out' })],
      'postgresql',
    )
    const act: StepType['run'] = ({ step: name }) =>
      Promise.resolve({ outcome: 'waiting', state: { name }, event: `event of ${name}` })
    const { work, store } = startEngine(database, act)
    expect(await work()).toMatchObject({ outcome: 'postponed' })
    const [waiting] = await store.waitingFor('event of other')
    expect(waiting).toMatchObject({ step: 'other', wait_state: '{"name":"other"}' })
    await store.wake(waiting?.key ?? '', '{"event":1}')
    expect(await store.findAttempt(waiting?.key ?? '')).toMatchObject({ woken: 1, wait_state: '{"event":1}' })
    await store.commit([store.move(RUN, ['Pending', 'Running'], 'Paused', 1)])
    await expect(store.commit([store.move(RUN, ['Running'], 'Completed', 2)])).rejects.toThrow()
    await store.commit([store.move(RUN, ['Paused'], 'Cancelled', 3, 'why'), store.cancelAttempts(RUN, 3)])
    expect((await store.attempts(RUN)).map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])

    await store.commit([store.insert(newRun('second', steps), 5, 1)])
    await store.commit([store.insert(newRun('second', steps), 5, 2)])
    await expect(store.commit([store.insert(newRun('third', steps), 6, 1)])).rejects.toThrow()
    const ids = async (page: object) => (await store.list({ limit: 10, offset: 0, ...page })).map(({ id }) => id)
    expect([await ids({}), await ids({ workflowId: 'w', state: 'Cancelled' }), await ids({ offset: 1 })]).toEqual([
      ['second', RUN],
      [RUN],
      [RUN],
    ])
    await store.commit([store.fail('second', 'dead', 7), store.cancelAttempts('second', 7)])
    expect(await store.surplus(1, 10)).toEqual([RUN])
    await store.commit(store.remove(RUN))
    expect([await ids({}), await store.countActive()]).toEqual([['second'], 0])
  })

  it('definitions keep revisions and who may run them, and files the homes that have them', async () => {
    await using database = await prepare(steps, 'postgresql')
    const store = new DefinitionStore(database.sql, createConsola({ level: -999 }))
    const first: Workflow = { ...workflowOf(steps), id: 'd', runBy: ['writer'], file: 'd.toml' }
    await store.commit(store.write(first, 2))
    for (const revision of [2, 3]) await store.commit(store.write({ ...first, revision, name: `n${revision}` }, 2))
    await expect(store.commit(store.write({ ...first, revision: 3 }, 2))).rejects.toThrow()
    expect(await store.find('d')).toMatchObject({ revision: 3, name: 'n3', runBy: ['writer'] })
    expect([await store.findRevision('d', 1), (await store.findRevision('d', 2))?.name]).toEqual([undefined, 'n2'])
    expect(await store.list()).toMatchObject([{ id: 'd', step_count: 7, run_by: ['writer'] }])
    expect([await store.findByName('n3'), await store.count()]).toEqual([['d'], 1])

    await store.commit(store.write({ ...first, id: 'e' }, 2))
    await database.sql.run`UPDATE workflows_definition SET run_by = '[' WHERE id = 'e'`
    expect([(await store.list()).map(({ id }) => id), await store.count()]).toEqual([['d'], 2])

    const [own, other] = [new FileClaims(database.sql, 'own'), new FileClaims(database.sql, 'other')]
    await store.commit([own.claim('d.toml', '1'), other.claim('d.toml', '2'), own.claim('d.toml', '3')])
    expect(await own.find('d.toml')).toEqual({ own: '3', hasOthers: true })
    await store.commit([own.release('d.toml')])
    expect(await other.find('d.toml')).toEqual({ own: '2', hasOthers: false })
    await store.commit([...store.remove('d'), other.drop('d.toml')])
    expect([await store.find('d'), await other.find('d.toml')]).toEqual([
      undefined,
      { own: undefined, hasOthers: false },
    ])
  })
})
