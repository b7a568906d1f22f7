import type { Clock, DatabaseServer } from 'svc/internal'
import type { Logger, PluginDatabase } from 'svc/sdk'
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

/** The driver of the settings; `auto` is pg-boss on PostgreSQL. Throws when it cannot be on this database. */
export async function openDriver(deps: DriverDeps): Promise<QueueDriver> {
  const { server, settings } = deps
  const { driver } = settings
  if (driver === 'pg-boss' || (driver === 'auto' && server.openPool !== undefined)) {
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
