import { expect, it } from 'vitest'
import { RunChanges } from '../../../plugins/workflows/runs/changes.ts'
import { followAll } from '../../../plugins/workflows/runs/stream.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { prepare, recorder, RUN, startEngine, steps } from './engine-stage.ts'

it('who follows all runs hears of those that another daemon moves, and of nothing twice', async () => {
  await using database = await prepare(steps)
  const { store } = startEngine(database, recorder().act)
  const [clock, leaving] = [new ManualClock(), new AbortController()]
  const events = followAll({ store, changes: new RunChanges(), clock }, leaving.signal)
  const next = async (): Promise<unknown> => {
    const { value } = (await events.next()) as { value: { data: string } }
    const { run } = JSON.parse(value.data) as { run: { id: string; state: string } }
    return [run.id, run.state]
  }
  /** No change is announced: another daemon wrote the row. */
  const nextAfter = async (move: () => Promise<unknown>): Promise<unknown> => {
    const told = next()
    await expect.poll(() => clock.waiting).toBe(1)
    clock.advance(1_000)
    await expect.poll(() => clock.waiting).toBe(1)
    await move()
    clock.advance(1_000)
    return told
  }
  expect(await next()).toEqual([RUN, 'Pending'])
  expect(await nextAfter(() => store.commit([store.move(RUN, ['Pending'], 'Paused', 1)]))).toEqual([RUN, 'Paused'])
  expect(await nextAfter(() => store.commit([store.move(RUN, ['Paused'], 'Cancelled', 2)]))).toEqual([RUN, 'Cancelled'])
  leaving.abort()
  expect((await events.next()).done).toBe(true)
})
