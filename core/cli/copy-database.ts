import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { readVariable } from '../process/inherited.ts'
import { createLog } from '../log/log.ts'
import { checkFile } from '../storage/check-file.ts'
import { CopyRefused, CopyUnknown, copyToPostgres } from '../storage/copy-to-postgres.ts'
import type { Copied } from '../storage/copy-to-postgres.ts'
import { openReadOnly } from '../storage/read-only.ts'
import { DatabaseRefused } from '../storage/sqlite-file.ts'
import { databasePath } from './database-path.ts'
import { exits, Failure } from './failure.ts'
import type { HomeLocation } from './home-location.ts'
import { workOffline } from './offline.ts'
import { readDefinitions } from './plugin-definitions.ts'
import { explainServer, explainStart } from './start-failure.ts'
import { openStoppedHome } from './stopped-home.ts'

export interface CopyDatabaseRequest {
  /** Of an empty PostgreSQL database. */
  readonly url: string
  /** Work of a plugin whose answer must be the same of the copy as of the original. */
  readonly verify: readonly { readonly plugin: string; readonly work: string }[]
}
export interface CopiedDatabase extends Copied {
  /** The file, which stays as it is. */
  readonly file: string
  /** What `verify` answered, in its order. */
  readonly verdicts: readonly unknown[]
}

/**
 * Copies the SQLite database of a home whose daemon does not run to an empty PostgreSQL database. Throws a `Failure`,
 * and nothing is copied then.
 */
export async function copyDatabase(
  location: HomeLocation,
  { url, verify }: CopyDatabaseRequest,
): Promise<CopiedDatabase> {
  if (!/^postgres(ql)?:\/\/./.test(url))
    throw new Failure(exits.usage, 'this is no PostgreSQL database', 'name one as postgres://user@host/database')
  using home = await openStoppedHome(location)
  const { config } = home
  const file = databasePath(config)
  // Of a damaged file rows can be missing without an error.
  const damage = existsSync(file) ? await checkFile(file, 'integrity_check') : undefined
  if (damage !== undefined) throw explainStart(new DatabaseRefused(file, `is damaged (${damage})`), config)
  const answers = (sql?: Parameters<typeof workOffline>[2]['sql']): Promise<readonly unknown[]> =>
    Promise.all(verify.map(({ plugin, work }) => workOffline(plugin, work, { config, sql }, {})))
  const verdicts = await answers()
  using source = openReadOnly(file)
  try {
    const copied = await copyToPostgres({
      source,
      url,
      password: readVariable('PGPASSWORD'),
      plugins: await readDefinitions(config.home_dir, config.plugins.paths, (folder, why) => {
        // Its tables would be taken for those of a plugin that is gone.
        throw new CopyRefused(`the plugin ${folder} cannot be read (${why}): correct it, or remove it`)
      }),
      log: createLog({ level: 'warn' }),
      async check(copy) {
        if (!isDeepStrictEqual(await answers(copy), verdicts))
          throw new CopyRefused('what was verified of the copy is not what was verified of the original')
      },
    })
    return { ...copied, file, verdicts }
  } catch (error) {
    if (error instanceof CopyRefused)
      throw new Failure(exits.failed, error.message, 'nothing was copied', { cause: error })
    if (error instanceof CopyUnknown)
      throw new Failure(
        exits.failed,
        error.message,
        'copy again: the copy was made, and is whole, if the database is not empty any more',
        { cause: error },
      )
    throw explainServer(error, url) ?? error
  }
}
