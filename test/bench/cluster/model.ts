import { Cores, SimulatedClock, Station, WriteAheadLog } from './simulation.ts'

/** What a turn costs, as `npm run bench cluster` measures it. Times are milliseconds of one core. */
export interface Costs {
  readonly daemonMs: number
  /** More for daemons that share a core. */
  readonly sharedCoreMs: number
  readonly postgresMs: number
  readonly roundTrips: number
  /** Transactions that wait for the disk. */
  readonly commits: number
  /** What a turn costs more that enters at another daemon than the one that has its session. */
  readonly relayed: {
    readonly daemonMs: number
    readonly postgresMs: number
    readonly roundTrips: number
    readonly commits: number
    readonly notifications: number
  }
  /** Of one notification, and more for each other daemon: the server wakes all that listen on the database. */
  readonly notifyMs: number
  readonly wakeMs: number
  readonly idle: {
    /** Of each daemon, in a second. */
    readonly postgresMs: number
    /** Of each daemon's look at each member, three times in a lease. */
    readonly memberMs: number
    readonly looksPerSecond: number
  }
  readonly connections: number
  readonly walBytes: number
}

export interface Machine {
  readonly daemons: number
  /** The part of the turns that enters at another daemon than the one that has their session. */
  readonly relayedShare: number
  /** Cores of the server, and of each daemon; `shared`: all work on these. */
  readonly postgresCores: number
  readonly shared?: { readonly cores: number; readonly aroundMs: number }
  /** That one write to the disk takes, which commits share. */
  readonly flushMs: number
  /** Turns at once. */
  readonly clients: number
}

export interface Limit {
  readonly what: string
  /** Turns a second. */
  readonly rate: number
}

/** What each part of the system can do at most, the smallest first. */
export function limits(costs: Costs, machine: Machine): readonly Limit[] {
  const { daemons, relayedShare, flushMs, shared } = machine
  const cost = costOfTurn(costs, machine)
  const cores = freeCores(costs, machine)
  const found: Limit[] = shared
    ? [{ what: 'cores', rate: (1000 * shared.cores) / (cost.daemonMs + cost.postgresMs + shared.aroundMs) }]
    : [
        { what: 'daemons', rate: (1000 * daemons) / cost.daemonMs },
        { what: 'cores of PostgreSQL', rate: (1000 * cores) / cost.postgresMs },
      ]
  // Whoever notifies holds a lock of the whole server until the disk has its commit: the write of others that runs
  // already has to end, then comes its own.
  if (relayedShare > 0) found.push({ what: 'commits that notify', rate: 1000 / (2 * flushMs) / relayedShare })
  return found.toSorted((one, other) => one.rate - other.rate)
}

/** Processor time of a mean turn. */
export function costOfTurn(
  { daemonMs, sharedCoreMs, postgresMs, relayed, notifyMs, wakeMs }: Costs,
  { daemons, relayedShare, shared }: Pick<Machine, 'daemons' | 'relayedShare' | 'shared'>,
): { readonly daemonMs: number; readonly postgresMs: number } {
  const notified = relayed.notifications * (notifyMs + wakeMs * (daemons - 1))
  return {
    daemonMs: daemonMs + (shared && daemons > 1 ? sharedCoreMs : 0) + relayedShare * relayed.daemonMs,
    postgresMs: postgresMs + relayedShare * (relayed.postgresMs + notified),
  }
}
/** Those of the server that daemons leave for turns: each looks at all of them. */
export function freeCores(
  { idle }: Costs,
  { daemons, postgresCores }: Pick<Machine, 'daemons' | 'postgresCores'>,
): number {
  const beats = daemons * daemons * idle.memberMs * idle.looksPerSecond
  return Math.max(0.01, postgresCores - (daemons * idle.postgresMs + beats) / 1000)
}

/** Counted are the turns that end between these parts of all. */
const COUNTED = [0.2, 0.8] as const

/** Turns a second of clients that ask again as soon as they are answered, event by event. */
export async function simulate(costs: Costs, machine: Machine, turns: number): Promise<number> {
  const { daemons, clients, shared, relayedShare, flushMs } = machine
  const clock = new SimulatedClock()
  const common = shared && new Cores(clock, shared.cores)
  const server = common ?? new Cores(clock, freeCores(costs, machine))
  const log = new WriteAheadLog(clock, flushMs)
  const notifier = new Station(1)
  const nodes = Array.from({ length: daemons }, () => {
    const cores = common ?? new Cores(clock, 1)
    const thread = new Station(1)
    return {
      connections: new Station(costs.connections),
      work: (ms: number) => (common ? thread.use(() => cores.work(ms)) : cores.work(ms)),
    }
  })
  const own = { ...costs, daemonMs: costOfTurn(costs, { ...machine, relayedShare: 0 }).daemonMs }
  const wakes = costs.notifyMs + costs.wakeMs * (daemons - 1)
  let started = 0
  let ended = 0
  let begunAt = 0
  let endedAt = 0
  const [from, to] = [Math.round(turns * COUNTED[0]), Math.round(turns * COUNTED[1])]
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()

  /** Round trips of a daemon: some of them write, and one of those may notify. */
  const work = async (
    node: (typeof nodes)[number],
    part: {
      readonly daemonMs: number
      readonly postgresMs: number
      readonly roundTrips: number
      readonly commits: number
    },
    notifies = false,
  ): Promise<void> => {
    const trips = Math.max(1, Math.round(part.roundTrips))
    for (let trip = 0; trip < trips; trip++) {
      await node.work(part.daemonMs / trips)
      await node.connections.use(async () => {
        await server.work(part.postgresMs / trips)
        if (notifies && trip === 0) await notifier.use(() => log.flush())
        else if (trip < Math.round(part.commits)) await log.flush()
      })
    }
  }
  const turn = async (number: number): Promise<void> => {
    const owner = nodes[number % daemons]
    const entry = nodes[(number + 1) % daemons]
    if (!owner || !entry) return
    if (shared) await server.work(shared.aroundMs)
    if ((number * 0.618034) % 1 < relayedShare) {
      await work(entry, costs.relayed, true)
      for (let sent = 0; sent < Math.round(costs.relayed.notifications); sent++) await server.work(wakes)
    }
    await work(owner, own)
  }
  // All at once they would come in waves.
  const [first] = limits(costs, machine)
  const client = async (index: number): Promise<void> => {
    await clock.wait((1000 * index) / (first?.rate ?? 1))
    while (started < turns) {
      await turn(started++)
      if (++ended === from) begunAt = clock.now
      if (ended === to) endedAt = clock.now
      if (ended === turns) finish()
    }
  }
  for (let index = 0; index < clients; index++) void client(index)
  await Promise.race([finished, clock.run(Infinity)])
  return (1000 * (to - from)) / (endedAt - begunAt)
}
