import { describe, expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import type { Slot } from '../../../plugins/schedules/job.ts'
import { engines, open } from '../../core/storage/engines.ts'
import { eventually } from '../../support/eventually.ts'
import { startDaemon, WallClock, World } from './daemon.ts'
import type { TestDaemon } from './daemon.ts'

const MINUTE = 60_000
const STEP = MINUTE / 4
/** Moves on until something has happened, which takes the database a moment. */
async function passUntil({ clock, database }: World, hasHappened: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await hasHappened())) {
    clock.advance(STEP)
    for (let turn = 0; turn < 5; turn++) await database.check()
  }
}
/** Time and outcome of slots, such as `09:10 done`. */
const told = (slots: readonly Slot[]): string[] =>
  slots.map(({ slotAt, state, reason }) => `${new Date(slotAt).toISOString().slice(11, 16)} ${reason ?? state}`)

describe.each(engines)('the scheduler on %s', (engine) => {
  const start = async (iso = '2026-03-02T09:00:30Z') => {
    const { database } = await open(engine)
    const world = new World(database, new WallClock(iso))
    await world.prepare()
    return world
  }
  /** Moves on in steps, and lets the daemons work after each. */
  const pass = async (world: World, daemons: readonly TestDaemon[], minutes: number): Promise<void> => {
    for (let left = minutes * MINUTE; left > 0; left -= STEP) {
      world.clock.advance(STEP)
      for (let again = 0; again < 3; again++) for (const daemon of daemons) await daemon.idle()
    }
  }

  it('runs every slot once, with two daemons on one database', async () => {
    const world = await start()
    const one = startDaemon(world)
    const two = startDaemon(world)
    one.begin()
    two.begin()
    const { id } = await one.add({ delivery: { kind: 'webhook', url: 'https://hooks.example.com/' } })
    two.scheduler.wake()
    await pass(world, [one, two], 20)
    expect(told(await one.slots(id))).toEqual(['09:10 done', '09:20 done'])
    expect(world.begun).toHaveLength(2)
    expect(world.delivered.map(({ text }) => text)).toEqual(['done: Report', 'done: Report'])
    expect(new Set(world.delivered.map(({ id: result }) => result)).size).toBe(2)
    expect(await one.job(id)).toMatchObject({ lastStatus: 'ok', runs: 2, failures: 0 })
    await Promise.all([one.stop(), two.stop()])
  })

  it('goes on after a crash in the middle of a run, and begins no second turn', async () => {
    const world = await start()
    const first = startDaemon(world)
    first.begin()
    const { id } = await first.add({})
    world.answer = () => new Promise(() => {})
    await passUntil(world, () => world.begun.length > 0)
    first.crash()
    const second = startDaemon(world)
    second.begin()
    await second.idle()
    await pass(world, [second], 1)
    // What met a write of the first one is tried again after a pause.
    await eventually(async () => {
      world.clock.advance(100)
      await second.idle()
      expect(told(await second.slots(id))).toEqual(['09:10 done'])
    })
    expect(world.begun).toHaveLength(1)
    await second.stop()
  })

  it('goes on beside a slot that cannot be read, and takes it for one that runs', async () => {
    const world = await start()
    const daemon = startDaemon(world)
    const [busy, free] = [await daemon.add({}), await daemon.add({})]
    await world.database.sql
      .run`INSERT INTO schedules_slot (job_id, kind, slot_at, state, reason, late_ms, run_id, created_at)
      VALUES (${busy.id}, 'slot', 1, 'open', 'newer', 0, 'run', 1)`
    daemon.begin()
    await daemon.idle()
    await pass(world, [daemon], 10)
    expect(told(await daemon.slots(free.id))).toEqual(['09:10 done'])
    const [one] = await daemon.slots(busy.id)
    expect(one).toMatchObject({ state: 'skipped' })
    expect(world.begun).toHaveLength(1)
    await daemon.stop()
  })

  it('goes on beside jobs that cannot be read, however many are due', async () => {
    const world = await start()
    const { sql } = world.database
    const daemon = startDaemon(world)
    const { id } = await daemon.add({})
    for (let at = 0; at < 25; at++) await daemon.add({})
    await sql.run`UPDATE schedules_job SET timing = '{', next_run = 1 WHERE id <> ${id}`
    daemon.begin()
    await daemon.idle()
    await pass(world, [daemon], 10)
    expect(told(await daemon.slots(id))).toEqual(['09:10 done'])
    const { jobs } = daemon
    expect((await jobs.list({}, 100)).map((job) => job.id)).toEqual([id])
    expect(await sql.one`SELECT COUNT(*) AS count FROM schedules_job`).toEqual({ count: 26 })
    await daemon.stop()
  })
})

describe('the scheduler', () => {
  const start = async (iso = '2026-03-02T09:00:30Z', settings: Record<string, unknown> = {}) => {
    const { database } = await open('sqlite')
    const world = new World(database, new WallClock(iso))
    await world.prepare()
    const daemon = startDaemon(world, settings)
    daemon.begin()
    await daemon.idle()
    const pass = async (minutes: number, step = STEP): Promise<void> => {
      await daemon.idle()
      for (let left = minutes * MINUTE; left > 0; left -= step) {
        world.clock.advance(step)
        await daemon.idle()
        await daemon.idle()
      }
    }
    /** The machine sleeps: the clock goes on, and timers do not. */
    const sleepUntil = async (time: string): Promise<void> => {
      world.clock.set(time)
      await pass(1)
    }
    return { world, pass, sleepUntil, ...daemon }
  }

  it('skips missed slots or makes up for them with one run, as the job says, and says how late', async () => {
    const { add, slots, job, pass, sleepUntil, stop, outcomes } = await start()
    const skip = await add({ missed: 'skip' })
    const once = await add({ missed: 'once' })
    await sleepUntil('2026-03-02T09:37:00Z')
    expect(told(await slots(skip.id))).toEqual(['09:10 missed', '09:20 missed', '09:30 missed'])
    expect(told(await slots(once.id))).toEqual(['09:10 superseded', '09:20 superseded', '09:30 done'])
    const [, , late] = await slots(once.id)
    expect(late?.lateMs).toBeGreaterThanOrEqual(7 * MINUTE)
    expect(late?.lateMs).toBeLessThan(8 * MINUTE)
    expect(await job(skip.id)).toMatchObject({ failures: 0, lastStatus: undefined, enabled: true })
    await pass(3)
    expect(told(await slots(skip.id)).at(-1)).toBe('09:40 done')
    expect(outcomes.filter((outcome) => outcome === 'fired')).toHaveLength(3)
    await stop()
  })

  it('runs a slot that is a little late', async () => {
    const { add, slots, sleepUntil, stop } = await start()
    const { id } = await add({ missed: 'skip' })
    await sleepUntil('2026-03-02T09:13:00Z')
    expect(told(await slots(id))).toEqual(['09:10 done'])
    expect((await slots(id))[0]?.lateMs).toBeGreaterThanOrEqual(3 * MINUTE)
    await stop()
  })

  it('records a long pause with a bound', async () => {
    const { add, slots, sleepUntil, stop } = await start(undefined, { max_skips_recorded: 2 })
    const { id } = await add({ missed: 'skip' })
    await sleepUntil('2026-03-09T10:05:30Z')
    const all = await slots(id)
    expect(told(all)).toEqual(['09:10 missed', '09:50 missed', '10:00 missed'])
    expect(all.map(({ untilAt }) => untilAt && new Date(untilAt).toISOString())).toEqual([
      '2026-03-09T09:49:59.999Z',
      undefined,
      undefined,
    ])
    await stop()
  })

  it('does not run a slot again when the clock is set back, and stays silent no longer than it must', async () => {
    const { world, add, slots, pass, sleepUntil, stop } = await start()
    const { id } = await add({ missed: 'once' })
    await pass(10)
    await sleepUntil('2030-01-01T00:05:00Z')
    await sleepUntil('2026-03-02T09:05:00Z')
    await pass(30)
    const all = told(await slots(id))
    expect(all.slice(0, 3)).toEqual(['09:10 done', '09:20 superseded', '09:30 done'])
    expect(all.filter((slot) => slot.endsWith('done'))).toEqual(['09:10 done', '09:30 done', '00:00 done'])
    expect(world.begun).toHaveLength(3)
    await stop()
  })

  it('fires in the nights in which clocks change', async () => {
    const { add, slots, pass, stop } = await start('2026-10-24T23:00:00Z')
    const { id } = await add({ schedule: '30 2 * * *', tz: 'Europe/Berlin' })
    const hourly = await add({ schedule: '30 * * * *', tz: 'Europe/Berlin' })
    await pass(180, MINUTE)
    expect(told(await slots(id))).toEqual(['00:30 done'])
    expect(told(await slots(hourly.id))).toEqual(['23:30 done', '00:30 done', '01:30 done'])
    await stop()
  })

  it('skips a slot while an earlier one runs', async () => {
    const { world, add, slots, pass, stop } = await start()
    const { promise, resolve } = Promise.withResolvers<string>()
    world.answer = () => promise
    const { id } = await add({})
    await passUntil(world, () => world.begun.length > 0)
    await passUntil(world, async () => (await slots(id)).length > 1)
    expect(told(await slots(id))).toEqual(['09:10 open', '09:20 still_running'])
    resolve('at last')
    await pass(11)
    expect(told(await slots(id))).toEqual(['09:10 done', '09:20 still_running', '09:30 done'])
    await stop()
  })

  it.each([
    ['agent_not_running', (world: World) => void (world.agent.state = 'Paused')],
    ['agent_removed', (world: World) => void Object.assign(world.agent, { id: 'another' })],
    [
      'quiet_hours',
      (world: World) =>
        void (world.refuse = new Refusal('service_unavailable', 'quiet', { details: { quiet_hours: '22:00-07:00' } })),
    ],
  ])('records that a slot was skipped: %s, which is no failure', async (reason, change) => {
    const { world, add, slots, job, pass, stop, events } = await start()
    const { id } = await add({})
    change(world)
    await pass(10)
    expect(told(await slots(id))).toEqual([`09:10 ${reason}`])
    expect(await job(id)).toMatchObject({ failures: 0, enabled: true, lastStatus: undefined })
    expect(events).toMatchObject([{ jobId: id, state: 'skipped', error: expect.stringContaining(reason) }])
    expect(world.begun).toEqual([])
    await stop()
  })

  it('disables a job after failures in a row, and tells; enabling starts it afresh', async () => {
    const { world, add, slots, job, pass, stop, events, outcomes, schedules } = await start(undefined, {
      max_failures: 3,
    })
    world.answer = () => Promise.reject(new Error('the model is on strike'))
    const { id } = await add({ delivery: { kind: 'webhook', url: 'https://hooks.example.com/' } })
    await pass(60)
    expect(told(await slots(id))).toEqual(['09:10 failed', '09:20 failed', '09:30 failed'])
    expect(await job(id)).toMatchObject({
      enabled: false,
      nextRun: undefined,
      failures: 3,
      lastStatus: 'error: the model is on strike',
      reason: 'disabled after 3 failures in a row',
    })
    expect(events.at(-1)).toMatchObject({ jobId: id, failures: 3, error: 'the model is on strike' })
    expect(outcomes).toContain('disabled')
    expect(world.delivered.map(({ event }) => event)).toEqual(['schedule.disabled'])
    world.answer = () => Promise.resolve('fine')
    await schedules.change('schedule_not_found', id, { enabled: true })
    await pass(10)
    expect(told(await slots(id)).at(-1)).toMatch(/ done$/)
    expect(await job(id)).toMatchObject({ failures: 0, lastStatus: 'ok' })
    await stop()
  })

  it('ends a job for one moment after its success', async () => {
    const { add, slots, job, pass, stop } = await start()
    const { id } = await add({ schedule: { kind: 'at', at: '2026-03-02T09:05:00Z' } })
    const every = await add({ schedule: { kind: 'every', every_secs: 120 } })
    await pass(9)
    expect(told(await slots(id))).toEqual(['09:05 done'])
    expect(await job(id)).toMatchObject({ enabled: false, endedAt: expect.any(Number), nextRun: undefined })
    expect(told(await slots(every.id))).toEqual(['09:02 done', '09:04 done', '09:06 done', '09:08 done'])
    await stop()
  })

  it('runs what a changed job says now, and nothing of a removed one', async () => {
    const { world, add, job, pass, schedules, stop } = await start()
    const { id } = await add({})
    const gone = await add({})
    await schedules.change('schedule_not_found', id, { cron: '5 * * * *', prompt: 'Other' })
    await schedules.remove('schedule_not_found', gone.id)
    await pass(12)
    expect(world.begun).toEqual(['Other'])
    expect(await job(id)).toMatchObject({ nextRun: Date.parse('2026-03-02T10:05:00Z') })
    await stop()
  })

  it('goes on when a waiting slot was cancelled in the queue', async () => {
    const { world, add, slots, pass, queue, stop } = await start()
    world.answer = () => new Promise(() => {})
    const { id } = await add({})
    await passUntil(world, () => world.begun.length > 0)
    const [running] = await slots(id)
    await queue.cancel('schedule', running?.runId ?? '')
    world.answer = () => Promise.resolve('fine')
    await pass(10)
    expect(told(await slots(id))).toEqual(['09:10 cancelled', '09:20 done'])
    await stop()
  })

  it('has no timer when nothing is due', async () => {
    const { world, stop } = await start()
    const before = world.clock.waiting
    const other = startDaemon(world)
    other.scheduler.wake()
    await other.idle()
    expect(world.clock.waiting).toBe(before)
    await stop()
  })
})
