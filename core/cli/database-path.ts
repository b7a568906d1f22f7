import { resolve } from 'node:path'
import type { Config } from '../config/schema.ts'
import { exits, Failure } from './failure.ts'

/** The file of the home's database. Throws a `Failure` where it is on a server. */
export function databasePath(config: Config): string {
  const path = /^sqlite:(.+)$/.exec(config.database_url)?.[1]
  if (path === undefined || path === ':memory:')
    throw new Failure(
      exits.failed,
      'the database of this home is not a file',
      'ask the running daemon, and use the tools of the database server for copies',
    )
  return resolve(path)
}
