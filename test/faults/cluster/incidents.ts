import { setTimeout as delay } from 'node:timers/promises'
import type { PostgresServer, TestDatabase } from '../../support/postgres-server.ts'
import { Client } from './client.ts'
import type { ClusterDaemon } from './daemons.ts'

export interface Scene {
  readonly daemons: readonly ClusterDaemon[]
  readonly server: PostgresServer
  readonly database: TestDatabase
  readonly leaseMs: number
  readonly random: () => number
  readonly problems: string[]
}
/** What happens to one daemon, or to the database. At the end everything works again, or is about to. */
type Incident = (scene: Scene, daemon: ClusterDaemon) => Promise<void>

const killed: Incident = async ({ random }, daemon) => {
  await daemon.kill()
  await delay(random() * 1_000)
  await daemon.start()
}
/** The others take over while it is away. */
const goneForLong: Incident = async ({ leaseMs }, daemon) => {
  await daemon.kill()
  await delay(leaseMs * 1.2)
  await daemon.start()
}
const killedWhileStarting: Incident = async ({ random }, daemon) => {
  await daemon.kill()
  await daemon.startAndKill(200 + random() * 1_000)
  await daemon.start()
}
const twoKilled: Incident = async ({ daemons }, daemon) => {
  const two = [daemon, daemons[(daemons.indexOf(daemon) + 1) % daemons.length] ?? daemon]
  await Promise.all(two.map((each) => each.kill()))
  await Promise.all(two.map((each) => each.start()))
}
const paused: Incident = async ({ leaseMs }, daemon) => {
  daemon.signal('SIGSTOP')
  await delay(leaseMs * 1.4)
  daemon.signal('SIGCONT')
}
const pausedShortly: Incident = async ({ leaseMs, random }, daemon) => {
  daemon.signal('SIGSTOP')
  await delay(leaseMs * random())
  daemon.signal('SIGCONT')
}
const terminated: Incident = async ({ problems }, daemon) => {
  const code = await daemon.stop()
  if (code !== 0) problems.push(`${daemon.name} ended with ${code} after SIGTERM`)
  await daemon.start()
}
const drained: Incident = async ({ problems }, daemon) => {
  const client = new Client(daemon.url, problems)
  await client.ask('POST', '/api/cluster/members/self/drain')
  await delay(1_500)
  await client.ask('POST', '/api/cluster/members/self/undrain')
}
const connectionsEnded: Incident = async ({ database, random }, daemon) => {
  for (let times = 0; times < 3; times++) {
    const sql = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '${daemon.name}'`
    // The server may be away too.
    await database.query(sql).catch(() => undefined)
    await delay(random() * 500)
  }
}
const connectionsCut: Incident = async ({ random }, daemon) => {
  for (let times = 0; times < 3; times++) {
    daemon.link.cut()
    await delay(random() * 500)
  }
}
/** What it sent before arrives after its lease is over. */
const unreachable: Incident = async ({ leaseMs }, daemon) => {
  daemon.link.hold()
  await delay(leaseMs * 1.4)
  daemon.link.release()
}
const databaseRestarted: Incident = async ({ server, random }) => {
  await server.stop('fast')
  await delay(random() * 1_500)
  await server.start()
}
const databaseCrashed: Incident = async ({ server, random }) => {
  await server.stop('immediate')
  await delay(random() * 1_500)
  await server.start()
}
/** Longer than any call waits for it, and than a lease. */
const databaseAway: Incident = async ({ server, leaseMs }) => {
  await server.stop('fast')
  await delay(leaseMs * 1.4)
  await server.start()
}
const MAX_SHIFT_MS = 240_000
const clockShifted: Incident = async ({ random }, daemon) => {
  await daemon.shiftClock((random() * 2 - 1) * MAX_SHIFT_MS)
  await delay(1_500)
}

export const incidents: Readonly<Record<string, Incident>> = {
  killed,
  terminated,
  paused,
  databaseCrashed,
  connectionsCut,
  goneForLong,
  drained,
  unreachable,
  databaseAway,
  twoKilled,
  clockShifted,
  databaseRestarted,
  connectionsEnded,
  killedWhileStarting,
  pausedShortly,
}
