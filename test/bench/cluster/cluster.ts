import type { Result } from '../figures.ts'
import { median } from '../processes.ts'
import { startFloor } from '../realistic-turn.ts'
import { startDaemons } from './daemons.ts'
import type { Daemons, TurnCost } from './daemons.ts'
import { commitRate, costOfMembers, costOfNotification } from './notify.ts'
import { listStatements, startBenchPostgres } from './postgres.ts'
import type { BenchPostgres } from './postgres.ts'

const ROUNDS = 3
const IDLE_MS = 15_000
const LISTENERS = [0, 1, 10, 100]
const MEMBERS = [10, 100, 1000]
const NO_GOAL = { floor: '', ratio: '', goal: '' }

/** Turns on one PostgreSQL by how many daemons work, and where they enter. */
interface Scenario {
  readonly label: string
  readonly daemons: Daemons
  readonly at: 'owner' | 'another'
  readonly agents: number
  readonly connections: number
  readonly costs: TurnCost[]
}

/**
 * What 1, 2 and 3 daemons on one PostgreSQL cost for a realistic turn: processor time, statements, round trips, commits,
 * the write-ahead log. Sessions are many (48, as many as turns at once) or few (two for each daemon), and turns enter at
 * the daemon that has their session or at another, which relays them.
 */
export async function cluster(): Promise<readonly Result[]> {
  await using postgres = await startBenchPostgres()
  await using provider = await startFloor('instant-provider.ts', 1, {
    TOKENS: '48',
    CALL_EVERY: '3',
    CALL_TOOL: 'system_time',
  })
  await using one = await startDaemons(1, postgres, provider)
  await using two = await startDaemons(2, postgres, provider)
  await using three = await startDaemons(3, postgres, provider)
  const all = [one, two, three]
  const scenarios: readonly Scenario[] = [
    ...all.map((daemons) => scenario(daemons, 'owner', 48)),
    ...all.map((daemons) => scenario(daemons, 'owner', 2 * daemons.count)),
    ...[two, three].map((daemons) => scenario(daemons, 'another', 48)),
  ]
  for (let round = 0; round < ROUNDS; round++)
    for (const { daemons, at, agents, connections, costs } of scenarios)
      costs.push(await daemons.run({ at, agents, connections }))
  return [
    ...scenarios.map(toResult),
    ...(await Promise.all(all.map(describeConnections))),
    await measureIdle(three, one.count + two.count + three.count),
    ...(await measureNotifications(postgres, one)),
    ...(await measureMembers(postgres, one)),
    ...(await measureCommits(one)),
    ...(process.env['STATEMENTS'] ? (await listStatements(three.database)).map(toStatementResult) : []),
  ]
}

function scenario(daemons: Daemons, at: 'owner' | 'another', agents: number): Scenario {
  const who = `${daemons.count} ${daemons.count === 1 ? 'daemon' : 'daemons'}`
  const where = at === 'owner' ? '' : ', at another daemon than the owner'
  return { label: `${who}, ${agents} sessions${where}`, daemons, at, agents, connections: agents, costs: [] }
}

/** The median of each figure: its rounds differ by what else the machine did. */
function toResult({ label, costs }: Scenario): Result {
  const of = (name: keyof TurnCost): number => median(costs.map((cost) => cost[name]))
  const [svc, server] = [of('daemonMs'), of('postgresMs')]
  return {
    label: `${label}, processor time of a turn`,
    value: ms(svc),
    floor: `${ms(server)} PostgreSQL`,
    ratio: `${((100 * server) / (svc + server)).toFixed(0)} %`,
    goal: [
      `${of('statements').toFixed(1)} statements`,
      `${of('roundTrips').toFixed(1)} round trips`,
      `${of('writes').toFixed(1)} commits that write`,
      `${(of('walBytes') / 1024).toFixed(1)} KB log`,
      `${of('rate').toFixed(0)} turns/s on ${of('cores').toFixed(2)} cores with ${of('aroundMs').toFixed(2)} ms around`,
      `${of('notifications').toFixed(2)} notifications of ${of('messages').toFixed(1)} messages`,
    ].join(', '),
  }
}
async function describeConnections(daemons: Daemons): Promise<Result> {
  return {
    ...NO_GOAL,
    label: `connections of ${daemons.count} ${daemons.count === 1 ? 'daemon' : 'daemons'} after that`,
    value: String(await daemons.connections()),
  }
}
/** `all` daemons use the server, those of other databases too. */
async function measureIdle(daemons: Daemons, all: number): Promise<Result> {
  const cost = await daemons.idle(IDLE_MS)
  const each = (value: number): string => (value / daemons.count).toFixed(1)
  return {
    label: `an idle daemon of ${daemons.count}, processor time of a second`,
    value: `${each(cost.daemonMs)} ms`,
    floor: `${(cost.postgresMs / all).toFixed(1)} ms PostgreSQL`,
    ratio: '',
    goal: `${each(cost.statements)} statements, ${each(cost.writes)} commits that write`,
  }
}
async function measureNotifications(postgres: BenchPostgres, { database }: Daemons): Promise<readonly Result[]> {
  const costs: number[] = []
  for (const listeners of LISTENERS) {
    const rounds: number[] = []
    for (let round = 0; round < 3; round++) rounds.push(await costOfNotification(database, postgres, listeners))
    costs.push(median(rounds))
  }
  return LISTENERS.map((listeners, index) => ({
    ...NO_GOAL,
    label: `a notification while ${listeners} others listen, processor time of PostgreSQL`,
    value: `${(costs[index] ?? 0).toFixed(0)} us`,
  }))
}
async function measureMembers(postgres: BenchPostgres, { database }: Daemons): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const members of MEMBERS) {
    const cost = await costOfMembers(database, postgres, members)
    results.push({
      ...NO_GOAL,
      label: `a look at ${members} members, processor time of PostgreSQL`,
      value: `${cost.toFixed(0)} us`,
    })
  }
  return results
}
async function measureCommits({ database }: Daemons): Promise<readonly Result[]> {
  const [plain, notifying]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    plain.push(await commitRate(database, false))
    notifying.push(await commitRate(database, true))
  }
  return [
    {
      label: 'commits over 8 connections with a notification in each',
      value: perSecond(median(notifying)),
      floor: `${perSecond(median(plain))} without`,
      ratio: (median(notifying) / median(plain)).toFixed(2),
      goal: '',
    },
  ]
}
const toStatementResult = (line: string): Result => ({ ...NO_GOAL, label: 'statement', value: line })

const ms = (value: number): string => `${value.toFixed(2)} ms`
const perSecond = (value: number): string => `${Math.round(value)}/s`
