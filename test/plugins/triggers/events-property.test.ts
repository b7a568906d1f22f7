import { expect, it } from 'vitest'
import type { Firing, Trigger } from '../../../plugins/triggers/trigger.ts'
import { open } from '../../core/storage/engines.ts'
import { startDaemon, World } from './daemon.ts'
import type { TestDaemon } from './daemon.ts'

// Whatever happens, whenever the process dies, and with one daemon or two: an event fires a trigger once, or there is a
// reason for which it did not.

const EAR = '01890000-0000-7000-8000-000000000001'
const STEPS = 80
const COOLDOWN_SECS = 60
const PATTERNS = [
  'all',
  'lifecycle',
  { agent_spawned: { name_pattern: 'a*' } },
  'memory_update',
  { memory_key_pattern: { key_pattern: 'k1' } },
  { content_match: { substring: 'BUDGET' } },
  'system',
]

/** Numbers from 0 to 1 that are the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
interface Expected {
  readonly position: number
  readonly kind: string
  readonly subject: string
  readonly at: number
  readonly matches: (pattern: (typeof PATTERNS)[number]) => boolean
}
interface Round {
  readonly world: World
  readonly random: () => number
  readonly events: Expected[]
  /** When each trigger was made. */
  readonly made: Map<string, { readonly pattern: (typeof PATTERNS)[number]; readonly since: number }>
  daemons: TestDaemon[]
}

function start(round: Round): void {
  const daemon = startDaemon(round.world, { cooldown_secs: COOLDOWN_SECS, max_per_event: 100, max_history: 10_000 })
  daemon.begin()
  round.daemons.push(daemon)
}
async function idle({ daemons }: Round): Promise<void> {
  for (let again = 0; again < 3; again++) for (const daemon of daemons) await daemon.idle()
}

/** Something happens to the daemon's data, as its own entry of the trail says. */
function happen({ world, random, events }: Round): void {
  const n = Math.floor(random() * 3)
  const id = `agent-${n}`
  const at = world.clock.now()
  const add = (event: string, agentId: string, details: string, facts: Omit<Expected, 'position' | 'at'>): void => {
    events.push({ ...facts, position: world.append(event, agentId, details), at })
  }
  const what = random()
  if (what < 0.3)
    add('agent_spawned', id, `agent "${n === 0 ? 'ann' : 'bob'}" spawned`, {
      kind: 'agent_spawned',
      subject: id,
      matches: (pattern) => pattern === 'all' || pattern === 'lifecycle' || (pattern === PATTERNS[2] && n === 0),
    })
  else if (what < 0.6)
    add('memory_access', id, `set key "k${n}" (3 bytes)`, {
      kind: 'memory_update',
      subject: `${id} k${n}`,
      matches: (pattern) => pattern === 'all' || pattern === 'memory_update' || (pattern === PATTERNS[4] && n === 1),
    })
  else if (what < 0.8)
    add('budget_warning', id, `the budget of agent ${n} is nearly used`, {
      kind: 'budget_warning',
      subject: id,
      matches: (pattern) => pattern === 'all' || pattern === PATTERNS[5] || pattern === 'system',
    })
  else world.append('memory_access', id, 'read key "k1"')
}

async function step(round: Round): Promise<void> {
  const { world, random } = round
  const what = random()
  if (what < 0.6) for (let n = Math.floor(random() * 4); n >= 0; n--) happen(round)
  else if (what < 0.7) world.clock.advance(Math.floor(random() * 2 * COOLDOWN_SECS) * 1000)
  else if (what < 0.75 && round.made.size < 12) {
    const pattern = PATTERNS[Math.floor(random() * PATTERNS.length)] ?? 'all'
    const { id, since } = (await round.daemons[0]?.triggers.create({ agent_id: 'ear', pattern }, undefined)) ?? {}
    if (id !== undefined && since !== undefined) round.made.set(id, { pattern, since })
  } else if (what < 0.9) {
    // Killed between two writes of whatever it does.
    happen(round)
    for (const daemon of round.daemons) {
      daemon.crashAfter(Math.floor(random() * 5))
      daemon.wake()
    }
    await idle(round)
    for (const daemon of round.daemons) daemon.crash()
    round.daemons = []
    start(round)
  } else if (round.daemons.length < 2) start(round)
  for (const daemon of round.daemons) daemon.wake()
  if (random() < 0.5) await idle(round)
}

/** What should have become of the events that a trigger matched, by the rules of the cool-down alone. */
function foreseen({ events, made }: Round, trigger: Trigger): ReadonlyMap<number, string> {
  const { pattern, since } = made.get(trigger.id) ?? { pattern: 'all', since: 0 }
  const last = new Map<string, number>()
  const found = new Map<number, string>()
  for (const event of events) {
    if (event.position <= since || !event.matches(pattern)) continue
    const key = `${event.kind} ${event.subject}`
    const before = last.get(key)
    const isCool = before === undefined || event.at - before >= COOLDOWN_SECS * 1000
    if (isCool) last.set(key, event.at)
    found.set(event.position, isCool ? 'done' : 'cooldown')
  }
  return found
}

/** What routes and an agent's end do, on every engine. */
async function tidy(daemon: TestDaemon | undefined): Promise<void> {
  if (!daemon) throw new Error('there is no daemon')
  const { triggers, store } = daemon
  const [first, second] = await triggers.list(EAR, 2, 0)
  if (!first || !second) throw new Error('there are no triggers')
  expect(await triggers.change(first.id, { enabled: false, max_fires: 10_000 })).toMatchObject({
    enabled: false,
    maxFires: 10_000,
    fireCount: first.fireCount,
    reason: 'disabled by hand',
  })
  expect(await triggers.change(first.id, { enabled: true, max_fires: 0 })).toMatchObject({ enabled: true })
  await store.commit(store.endOf(EAR, 1))
  expect(await triggers.require(second.id)).toMatchObject({ enabled: false, reason: 'its agent was removed' })
  await triggers.deleteOld()
  await triggers.remove(second.id)
  await expect(triggers.require(second.id)).rejects.toThrow('There is no trigger')
}

it.each([
  ['sqlite', 1],
  ['sqlite', 2],
  ['sqlite', 3],
  ['sqlite', 4],
  ['postgresql', 5],
] as const)('on %s, each event fires each trigger once, or is held back: seed %i', async (engine, seed) => {
  const { database } = await open(engine)
  const world = new World(database)
  await world.prepare()
  world.agents.push({ id: EAR, name: 'ear', state: 'Running' })
  const round: Round = { world, random: randomOf(seed), events: [], made: new Map(), daemons: [] }
  start(round)
  for (const pattern of ['all', 'lifecycle'] as const) {
    const made = await round.daemons[0]?.triggers.create({ agent_id: 'ear', pattern }, undefined)
    if (made) round.made.set(made.id, { pattern, since: made.since })
  }
  for (let n = 0; n < STEPS; n++) await step(round)
  // What a daemon that died had is taken over when its lease ends.
  for (let n = 0; n < 4; n++) {
    world.clock.advance(10_000)
    for (const daemon of round.daemons) {
      await daemon.renew()
      daemon.wake()
    }
    await idle(round)
  }
  const [daemon] = round.daemons
  let fired = 0
  for (const id of round.made.keys()) {
    const trigger = (await daemon?.triggers.require(id)) as Trigger
    const rows = (await daemon?.triggers.history(id, Number.MAX_SAFE_INTEGER, 10_000)) as readonly Firing[]
    const outcomes = rows.map(({ position, state, reason }) => [position, reason ?? state] as const)
    expect(new Map(outcomes)).toEqual(new Map([...foreseen(round, trigger)].toReversed()))
    expect(outcomes).toHaveLength(new Set(rows.map(({ position }) => position)).size)
    const done = rows.filter(({ state }) => state === 'done').length
    expect(trigger.fireCount).toBe(done)
    fired += done
  }
  expect(world.begun).toHaveLength(fired)
  expect(fired).toBeGreaterThan(10)
  await tidy(daemon)
  for (const each of round.daemons) await each.stop()
})
