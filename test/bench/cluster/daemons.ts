import { cpus } from 'node:os'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { body, DONE, spawnAgent, streamOf, talk, TURNS_BEFORE } from '../realistic-turn.ts'
import { Home, load, startSvc } from '../processes.ts'
import type { Server } from '../processes.ts'
import { readCounts } from './postgres.ts'
import type { BenchPostgres } from './postgres.ts'

/** What a turn cost, of all daemons and the database together. */
export interface TurnCost {
  readonly turns: number
  readonly daemonMs: number
  readonly postgresMs: number
  readonly statements: number
  readonly roundTrips: number
  readonly batches: number
  readonly writes: number
  readonly walBytes: number
  readonly notifications: number
  readonly messages: number
  /** Turns a second. */
  readonly rate: number
  /** Processor time of a turn in the provider and the client. */
  readonly aroundMs: number
  /** Cores that were left for all of that by what else the machine did. */
  readonly cores: number
}
/** What passes in a second without a turn. */
export type IdleCost = Omit<TurnCost, 'turns'>

export interface Daemons extends AsyncDisposable {
  readonly count: number
  readonly database: TestDatabase
  /** Turns of all agents, or of some, at the daemon that works on their session or at the next one. */
  run(where: {
    readonly at: 'owner' | 'another'
    readonly agents: number
    readonly connections: number
  }): Promise<TurnCost>
  idle(ms: number): Promise<IdleCost>
  connections(): Promise<number>
}

interface Load {
  readonly failures: number
  readonly failure?: string
  readonly all: number
  readonly cpuMs: number
}

const AGENTS = 48
const LOAD_MS = 2000
const VAULT_KEY = 'ab'.repeat(32)

/** Daemons on one database, and agents whose sessions they have in equal shares. */
export async function startDaemons(count: number, postgres: BenchPostgres, provider: Server): Promise<Daemons> {
  const database = await postgres.createDatabase()
  await database.query('CREATE EXTENSION pg_stat_statements')
  const homes = Array.from(
    { length: count },
    (_, index) =>
      new Home(`
database_url = "${database.url}"
default_provider = "openai"
default_model = "bench"
[plugins.cluster]
name = "bench-${index}"
[providers.openai]
base_url = "http://127.0.0.1:${provider.port}/v1"
api_key = "bench-key"
`),
  )
  const servers: Server[] = []
  for (const home of homes) servers.push(await startSvc(home, { SVC_VAULT_KEY: VAULT_KEY }))
  const agents: { readonly id: string; readonly owner: number }[] = []
  for (let index = 0; index < AGENTS; index++) {
    const owner = index % count
    const svc = at(servers, owner)
    agents.push({ id: await spawnAgent(svc, `bench-${index}`), owner })
  }
  await Promise.all(agents.map(({ id, owner }) => talk(at(servers, owner), id, TURNS_BEFORE)))

  const measure = async (
    work: () => Promise<{ readonly turns: number; readonly clientMs: number }>,
  ): Promise<TurnCost> => {
    const counts = await readCounts(database)
    const figures = await readFigures(servers)
    const read = () => ({
      daemons: cpuOf(servers),
      postgres: postgres.cpuMs(),
      provider: provider.cpuMs(),
      machine: machineMs(),
      at: performance.now(),
    })
    const before = read()
    const { turns, clientMs } = await work()
    const now = read()
    const ms = now.at - before.at
    const [daemonMs, postgresMs] = [now.daemons - before.daemons, now.postgres - before.postgres]
    const aroundMs = now.provider - before.provider + clientMs
    const othersMs = now.machine - before.machine - daemonMs - postgresMs - aroundMs
    const figuresAfter = await readFigures(servers)
    const after = await readCounts(database)
    return {
      turns,
      daemonMs: daemonMs / turns,
      postgresMs: postgresMs / turns,
      statements: (after.statements - counts.statements) / turns,
      writes: (after.writes - counts.writes) / turns,
      walBytes: (after.walBytes - counts.walBytes) / turns,
      notifications: (after.notifications - counts.notifications) / turns,
      roundTrips: (figuresAfter.roundTrips - figures.roundTrips) / turns,
      batches: (figuresAfter.batches - figures.batches) / turns,
      messages: (figuresAfter.messages - figures.messages) / turns,
      rate: (turns * 1000) / ms,
      aroundMs: aroundMs / turns,
      cores: cpus().length - othersMs / ms,
    }
  }
  return {
    count,
    database,
    async run({ at: where, agents: wanted, connections }) {
      const used = agents.slice(0, wanted)
      const step = where === 'owner' ? 0 : 1
      // One that was unused for a while belongs to whoever is asked first.
      await Promise.all(used.map(({ id, owner }) => talk(at(servers, owner), id, 1)))
      return measure(async () => {
        const { failures, failure, all, cpuMs } = await load<Load>('load.ts', {
          port: 0,
          ports: used.map(({ owner }) => at(servers, (owner + step) % count).port),
          paths: used.map(({ id }) => streamOf(id)),
          path: '/',
          connections,
          ms: LOAD_MS,
          method: 'POST',
          body,
          ends: DONE,
          sleeps: true,
        })
        if (failures > 0) throw new Error(`${failures} turns failed: ${failure}`)
        return { turns: all, clientMs: cpuMs }
      })
    },
    idle: (ms) =>
      measure(async () => {
        await new Promise((resolve) => {
          setTimeout(resolve, ms)
        })
        return { turns: ms / 1000, clientMs: 0 }
      }),
    connections: async () => (await readCounts(database)).connections,
    async [Symbol.asyncDispose]() {
      for (const server of servers) await server[Symbol.asyncDispose]()
      for (const home of homes) home[Symbol.dispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

function at(servers: readonly Server[], index: number): Server {
  const server = servers[index]
  if (!server) throw new Error(`there is no daemon ${index}`)
  return server
}
const cpuOf = (servers: readonly Server[]): number => servers.reduce((sum, server) => sum + server.cpuMs(), 0)

/** That all processors of the machine were busy since it started. */
function machineMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
}

/** Sums of `GET /api/metrics`. */
async function readFigures(
  servers: readonly Server[],
): Promise<{ readonly roundTrips: number; readonly batches: number; readonly messages: number }> {
  const texts = await Promise.all(
    servers.map(async ({ port }) => (await fetch(`http://127.0.0.1:${port}/api/metrics`)).text()),
  )
  const sum = (name: string): number =>
    texts
      .flatMap((text) => [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? ([\\d.e+]+)$`, 'gm'))])
      .reduce((total, [, value]) => total + Number(value), 0)
  return {
    roundTrips: sum('svc_database_round_trips_total'),
    batches: sum('svc_database_batches_total'),
    messages: sum('svc_broadcast_messages_total'),
  }
}
