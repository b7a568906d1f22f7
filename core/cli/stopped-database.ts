import { existsSync } from 'node:fs'
import { outboundSettings } from '../app/settings.ts'
import { createLog } from '../log/log.ts'
import { createOutbound } from '../net/outbound.ts'
import { readVariable } from '../process/inherited.ts'
import { commandLine } from '../process/command-name.ts'
import { openDatabase } from '../storage/open.ts'
import { databasePath } from './database-path.ts'
import { exits, Failure } from './failure.ts'
import type { HomeLocation } from './home-location.ts'
import { workOffline } from './offline.ts'
import { readDefinitions } from './plugin-definitions.ts'
import { explainStart } from './start-failure.ts'
import { openStoppedHome } from './stopped-home.ts'

/** Runs the function `work` of `offline` in the definition of a built-in plugin. */
export type Work = (
  plugin: string,
  work: string,
  options?: Readonly<Record<string, string | boolean | undefined>>,
) => Promise<unknown>

/**
 * Lets the offline work of plugins read and write the database of a home whose daemon does not run, and reach addresses
 * of the configuration. `plugins`: those whose tables have to be as this version makes them. The home is locked
 * meanwhile; a database that other daemons share is not. Throws a `Failure`.
 */
export async function writeOffline<T>(
  location: HomeLocation,
  plugins: readonly string[],
  use: (work: Work) => Promise<T>,
): Promise<T> {
  using home = await openStoppedHome(location)
  const { config } = home
  const isFile = config.database_url.startsWith('sqlite:')
  if (isFile && !existsSync(databasePath(config)))
    throw new Failure(exits.notFound, `there is no database ${databasePath(config)}`, 'nothing was changed')
  const log = createLog({ level: 'warn' })
  const opened = { url: config.database_url, password: readVariable('PGPASSWORD'), log }
  await using database = await openDatabase(opened).catch((error: unknown) => {
    throw explainStart(error, config)
  })
  const definitions = await readDefinitions(config.home_dir, [])
  const pending = await database.pending(
    definitions.flatMap(({ name, migrations = [] }) => (plugins.includes(name) ? [{ name, migrations }] : [])),
  )
  if (pending)
    throw new Failure(
      exits.failed,
      'the tables of this home are those of another version',
      `nothing was changed; start svc on it once with ${commandLine('start')}, stop it, and repeat`,
    )
  await using outbound = createOutbound({ settings: () => outboundSettings(config) })
  const { sql } = database
  return await use((plugin, work, options = {}) =>
    workOffline(plugin, work, { config, sql, fetch: outbound.forOperator() }, options),
  )
}
