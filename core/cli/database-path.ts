import { resolve } from 'node:path'
import type { Config } from '../config/schema.ts'
import { exits, Failure } from './failure.ts'

/** The file of the home's database. Throws a `Failure` where it is on a server. */
export function databasePath(config: Config): string {
  const path = /^sqlite:(.+)$/.exec(config.database_url)?.[1]
  if (path === undefined)
    throw new Failure(
      exits.failed,
      'the data of this home is on a PostgreSQL server',
      'ask the running daemon; copy it with pg_dump, and put a copy back with pg_restore',
    )
  if (path === ':memory:') throw new Failure(exits.failed, 'the database of this home is in memory', 'ask the daemon')
  return resolve(path)
}
