import type { Clock, DatabaseServer } from 'svc/internal'
import type { Logger, PluginDatabase } from 'svc/sdk'
import type { Cluster } from '../cluster/contract.ts'
import type { Settings } from './config.ts'
import type { Lost, QueueDriver } from './driver.ts'

export interface DriverDeps {
  readonly db: PluginDatabase
  readonly server: DatabaseServer
  readonly settings: Settings
  /** The same in every process on one home. */
  readonly owner: string
  readonly clock: Clock
  readonly log: Logger
  readonly lost: Lost
}

/** What keeps the jobs: `auto` is pg-boss on PostgreSQL. */
function driverOf({ driver }: Settings, server: DatabaseServer): 'embedded' | 'pg-boss' {
  if (driver !== 'auto') return driver
  return server.openPool === undefined ? 'embedded' : 'pg-boss'
}

/** The driver of the settings. Throws when it cannot be on this database, or others there have another one. */
export async function openDriver(cluster: Pick<Cluster, 'agree'>, deps: DriverDeps): Promise<QueueDriver> {
  const { server, settings } = deps
  const driver = driverOf(settings, server)
  const otherwise = 'jobs of one would be missed by the others, and slots of schedules be skipped'
  await cluster.agree({ key: 'plugins.queue.driver', value: driver, otherwise })
  if (driver === 'pg-boss') {
    if (server.openPool === undefined)
      throw new Error(
        'plugins.queue.driver is "pg-boss", which needs PostgreSQL; set database_url = "postgres://…", or driver = "auto"',
      )
    const { PgBossDriver } = await import('./pg-boss/driver.ts')
    return PgBossDriver.open({ ...deps, pool: server.openPool({ max: settings.connections, name: 'svc-queue' }) })
  }
  const { EmbeddedDriver } = await import('./embedded/store.ts')
  return new EmbeddedDriver(deps)
}
