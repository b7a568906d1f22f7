import type { Costs, Machine } from './model.ts'

/**
 * Of one run of `npm run bench cluster`, on two cores that others used as well, so that what costs 10 ms of processor
 * here costs 5 to 7 on a quiet machine. The costs are those of one daemon, and of two for what relaying and sharing a
 * core add: what is predicted for three comes from them alone.
 */
export const MEASURED: Costs = {
  daemonMs: 5.46,
  sharedCoreMs: 1.56,
  postgresMs: 3.45,
  roundTrips: 6.8,
  commits: 2.8,
  relayed: { daemonMs: 2.02, postgresMs: 2.21, roundTrips: 7.1, commits: 1.9, notifications: 1.77 },
  notifyMs: 0.104,
  wakeMs: 0.024,
  idle: { postgresMs: 6.5, memberMs: 0.0033, looksPerSecond: 0.2 },
  connections: 13,
  walBytes: 8500,
}

export interface Run extends Pick<Machine, 'daemons' | 'relayedShare' | 'flushMs'> {
  readonly rate: number
  readonly daemonMs: number
  readonly postgresMs: number
  readonly aroundMs: number
  readonly cores: number
}
/** A commit over one connection took 3.6 ms with all that wanted the disk and the cores. */
const run = (
  daemons: number,
  relayedShare: number,
  [rate, daemonMs, postgresMs, aroundMs, cores]: readonly [number, number, number, number, number],
): Run => ({ daemons, relayedShare, rate, daemonMs, postgresMs, aroundMs, cores, flushMs: 3.6 })

export const RUNS: readonly Run[] = [
  run(1, 0, [36, 5.46, 3.45, 1.72, 0.42]),
  run(2, 0, [69, 7.02, 3.57, 1.53, 0.84]),
  run(3, 0, [53, 7.28, 3.88, 1.61, 0.74]),
  run(2, 1, [38, 9.04, 6.01, 1.75, 0.63]),
  run(3, 1, [36, 10.77, 7.44, 2.0, 0.68]),
]
