import { existsSync } from 'node:fs'
import { readBuild } from '../process/installation.ts'
import type { Config } from '../config/schema.ts'
import { HomeInUse, lockHome } from '../storage/lock.ts'
import { stageDatabase } from '../storage/stage.ts'
import { completeSwap } from '../storage/swap.ts'
import { databasePath } from './database-path.ts'
import { exits, Failure } from './failure.ts'
import type { HomeLocation } from './home-location.ts'
import { workOffline } from './offline.ts'
import { loadSettings } from './settings.ts'
import { messageOf } from '../errors/message.ts'

/** A home whose daemon does not run, locked until it is disposed. */
export interface StoppedHome extends Disposable {
  readonly config: Config
  /** Version of this svc. */
  readonly version: string
  /** Like `workOffline`, on this home. */
  work(
    plugin: string,
    work: string,
    options: Readonly<Record<string, string | boolean | undefined>>,
    database?: 'required' | 'optional',
  ): Promise<unknown>
  /** Checks a copy of the database and plans to replace the database and its sidecar files with it. */
  stageDatabase(file: string): Promise<Readonly<Record<string, unknown>>>
  /** Carries out the planned replacement. Returns where the replaced data is kept. */
  completeReplacement(): string | undefined
}

/**
 * Locks a home whose daemon does not run, and completes a replacement of its files that was interrupted. Throws
 * `Failure`, `ConfigError`.
 */
export async function openStoppedHome(location: HomeLocation): Promise<StoppedHome> {
  const { config } = await loadSettings(location)
  const lock = await lockHome(config.home_dir).catch((error: unknown) => {
    if (error instanceof HomeInUse) throw new Failure(exits.inUse, error.message, undefined, { cause: error })
    throw error
  })
  try {
    completeSwap(config.home_dir)
  } catch (error) {
    lock[Symbol.dispose]()
    throw error
  }
  return {
    config,
    version: readBuild().version,
    work: (plugin, work, options, database = 'required') =>
      workOffline(plugin, work, { config, databaseIsOptional: database === 'optional' }, options),
    stageDatabase: (file) => stage(config, file),
    completeReplacement: () =>
      completeSwap(config.home_dir)?.moves.find(({ from, keep }) => from !== null && existsSync(keep))?.keep,
    [Symbol.dispose]: () => lock[Symbol.dispose](),
  }
}

async function stage(config: Config, file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const { readDefinitions } = await import('./plugin-definitions.ts')
    const definitions = await readDefinitions(config.home_dir, config.plugins.paths)
    const sidecars = definitions.flatMap(({ databaseSidecars = [] }) => databaseSidecars)
    return await stageDatabase(config.home_dir, databasePath(config), file, sidecars)
  } catch (error) {
    throw new Failure(exits.failed, `${file} is not restored: ${messageOf(error)}`, 'nothing was changed', {
      cause: error,
    })
  }
}
