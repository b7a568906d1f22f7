import { findProblems } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import type { HomeLocation } from './home-location.ts'
import { readDefinitions } from './plugin-definitions.ts'
import { findSources } from './settings.ts'

/**
 * The same error with everything else that is wrong in the configuration, the sections of plugins included, so that all
 * of it can be corrected at once.
 */
export async function withAllProblems(
  error: ConfigError,
  location: HomeLocation,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<ConfigError> {
  try {
    // `plugins.paths` may be what is wrong.
    const definitions = await readDefinitions(location.home, [])
    const found = await findProblems(await findSources(location, flags), definitions)
    const told = new Set(error.problems.map(({ key }) => key))
    const others = found.filter(({ key }) => !told.has(key))
    return others.length === 0 ? error : new ConfigError([...error.problems, ...others], { cause: error })
  } catch (unreadable) {
    // A file that cannot be read is the error itself.
    if (unreadable instanceof ConfigError) return error
    throw unreadable
  }
}
