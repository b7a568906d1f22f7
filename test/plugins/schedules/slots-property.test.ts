import { expect, it } from 'vitest'
import type { Job, Slot } from '../../../plugins/schedules/job.ts'
import { nextSlot } from '../../../plugins/schedules/timing/timing.ts'
import { open } from '../../core/storage/engines.ts'
import { startDaemon, WallClock, World } from './daemon.ts'
import type { TestDaemon } from './daemon.ts'

// Whatever the clock, the process and the machine do: every slot has run once, or there is a reason for which it did
// not.

const MINUTE = 60_000
const STEPS = 60
const TIMINGS = [
  { schedule: '*/7 * * * *' },
  { schedule: '30 2 * * *', tz: 'Europe/Berlin' },
  { schedule: '15,45 * * * *', tz: 'America/New_York' },
  { schedule: { kind: 'every', every_secs: 420 } },
]
/** Begins shortly before a night in which clocks change. */
const STARTS = ['2026-03-28T22:00:00Z', '2026-10-24T22:00:00Z', '2026-11-01T04:00:00Z', '2026-06-01T12:00:00Z']

/** Numbers from 0 to 1 that are the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

interface Round {
  readonly world: World
  readonly random: () => number
  daemons: TestDaemon[]
}
const idle = async ({ daemons }: Round): Promise<void> => {
  for (let again = 0; again < 3; again++) for (const daemon of daemons) await daemon.idle()
}
function start(round: Round): void {
  const daemon = startDaemon(round.world, { max_skips_recorded: 5, grace_secs: 120 })
  daemon.begin()
  round.daemons.push(daemon)
}
const pass = async (round: Round, minutes: number): Promise<void> => {
  for (let left = minutes * MINUTE; left > 0; left -= MINUTE / 4) {
    round.world.clock.advance(MINUTE / 4)
    await idle(round)
  }
}
/** One thing that happens to a machine. */
async function step(round: Round): Promise<void> {
  const { world, random } = round
  const { clock } = world
  const what = random()
  if (what < 0.55) await pass(round, 1 + Math.floor(random() * 6))
  else if (what < 0.65) clock.set(clock.now() + Math.floor(random() * 300) * MINUTE)
  else if (what < 0.72) clock.set(clock.now() - Math.floor(random() * 40) * MINUTE)
  else if (what < 0.84) {
    // Killed in the middle of whatever it does.
    clock.advance(Math.floor(random() * 20) * MINUTE)
    for (let turns = Math.floor(random() * 12); turns > 0; turns--) await new Promise(setImmediate)
    for (const daemon of round.daemons) daemon.crash()
    round.daemons = []
    start(round)
  } else if (what < 0.9 && round.daemons.length < 2) start(round)
  else world.agent.state = random() < 0.3 ? 'Paused' : 'Running'
}

/** What is wrong with the slots of a job; nothing when all is well. */
function problems(job: Job, slots: readonly Slot[], until: number): readonly string[] {
  const rows = new Map(slots.map((slot) => [slot.slotAt, slot]))
  const found = rows.size === slots.length ? [] : ['a slot has two rows']
  let at = nextSlot(job.timing, job.createdAt)
  while (at !== undefined && at <= until) {
    const due = at
    const isCovered = slots.some(({ slotAt, untilAt }) => slotAt <= due && due <= (untilAt ?? slotAt))
    if (!isCovered) found.push(`nothing is known of ${new Date(due).toISOString()}`)
    at = nextSlot(job.timing, due)
  }
  for (const { slotAt, state, reason } of slots)
    if (state !== 'done' && reason === undefined) found.push(`${new Date(slotAt).toISOString()} is ${state}`)
  return found
}

it.each(Array.from({ length: 8 }, (_, index) => index + 1))('every slot is accounted for (seed %i)', async (seed) => {
  const { database } = await open('sqlite')
  const random = randomOf(seed * 7_919)
  const world = new World(database, new WallClock(STARTS[seed % STARTS.length] ?? ''))
  await world.prepare()
  const round: Round = { world, random, daemons: [] }
  start(round)
  const ids: string[] = []
  for (const [index, timing] of TIMINGS.entries()) {
    const body = { ...timing, prompt: `job ${index}`, missed: random() < 0.5 ? 'skip' : 'once' }
    ids.push((await round.daemons[0]?.add(body))?.id ?? '')
  }
  for (let count = 0; count < STEPS; count++) await step(round)
  world.agent.state = 'Running'
  await pass(round, 30)
  const [daemon] = round.daemons
  if (!daemon) throw new Error('there is no daemon')
  let done = 0
  for (const id of ids) {
    const slots = await daemon.slots(id)
    expect(problems(await daemon.job(id), slots, world.clock.now() - MINUTE)).toEqual([])
    done += slots.filter(({ state }) => state === 'done').length
  }
  expect(world.begun).toHaveLength(done)
  expect(done).toBeGreaterThan(10)
  for (const one of round.daemons) await one.stop()
})
