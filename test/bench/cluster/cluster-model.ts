import type { Result } from '../figures.ts'
import { MEASURED, RUNS } from './measured.ts'
import { costOfTurn, freeCores, limits, simulate } from './model.ts'
import type { Machine } from './model.ts'

const TURNS = 3000
const SIZES = [10, 100, 1000]
/** A server for a service of that size: cores, and a disk with a cache that survives a loss of power. */
const SERVER = { postgresCores: 16, flushMs: 0.5 }

/**
 * What `docs/scale.md` says of 1 to 1,000 daemons: the rate that follows from the costs by division, and the same
 * simulated event by event; for up to three beside what was measured.
 */
export async function clusterModel(): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const run of RUNS) {
    const machine: Machine = {
      ...run,
      postgresCores: run.cores,
      shared: { cores: run.cores, aroundMs: run.aroundMs },
      flushMs: run.flushMs,
      clients: 48,
    }
    const rate = await simulate(MEASURED, machine, TURNS)
    const { daemonMs, postgresMs } = costOfTurn(MEASURED, machine)
    const label = `${run.daemons} measured, ${run.relayedShare === 0 ? 'at the owner' : 'relayed'}`
    results.push(
      beside(`${label}: turns a second`, rate, run.rate),
      beside(`${label}: processor time of a turn in PostgreSQL, ms`, postgresMs, run.postgresMs),
      beside(`${label}: in the daemons, ms`, daemonMs, run.daemonMs),
    )
  }
  for (const daemons of SIZES)
    for (const relayedShare of [0, (daemons - 1) / daemons]) {
      const machine: Machine = { ...SERVER, daemons, relayedShare, clients: Math.max(500, 2 * daemons) }
      const [first, second] = limits(MEASURED, machine)
      const rate = await simulate(MEASURED, machine, Math.max(TURNS, 4 * machine.clients))
      results.push({
        label: `${daemons} daemons, ${relayedShare === 0 ? 'a session always at its owner' : 'at any daemon'}: turns a second`,
        value: `${rate.toFixed(0)} simulated`,
        floor: `${(first?.rate ?? 0).toFixed(0)}: ${first?.what ?? ''}`,
        ratio: (rate / (first?.rate ?? 1)).toFixed(2),
        goal: [
          `next ${(second?.rate ?? 0).toFixed(0)}: ${second?.what ?? ''}`,
          `${daemons * MEASURED.connections} connections`,
          `${(SERVER.postgresCores - freeCores(MEASURED, { ...SERVER, daemons })).toFixed(2)} cores idle cost`,
          `${((rate * MEASURED.walBytes) / 2 ** 20).toFixed(0)} MB/s of log`,
        ].join(', '),
      })
    }
  return results
}

function beside(label: string, predicted: number, measured: number): Result {
  const show = (value: number): string => value.toFixed(value < 20 ? 2 : 0)
  return {
    label,
    value: `${show(predicted)} predicted`,
    floor: `${show(measured)} measured`,
    ratio: (predicted / measured).toFixed(2),
    goal: '',
  }
}
