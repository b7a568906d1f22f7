import { pathToFileURL } from 'node:url'
import { loadConfig } from '../config/load.ts'
import type { ConfigOptions, LoadedConfig } from '../config/load.ts'
import { isTree } from '../config/shape.ts'
import { readVariables } from '../process/inherited.ts'
import type { HomeLocation } from './home-location.ts'
import { findShippedConfig } from './shipped-config.ts'

/** The configuration as the daemon of this home gets it. Throws `ConfigError`. */
export async function loadSettings(
  location: HomeLocation,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<LoadedConfig> {
  return await loadConfig(await findSources(location, flags))
}

/** Where the daemon of this home reads its configuration. */
export async function findSources(
  location: HomeLocation,
  flags: Readonly<Record<string, unknown>>,
): Promise<ConfigOptions> {
  return {
    home: location.home,
    configFile: location.configFile,
    cwd: process.cwd(),
    env: readVariables(),
    flags,
    ...(await readShippedConfig()),
  }
}

async function readShippedConfig(): Promise<{ shipped?: Readonly<Record<string, unknown>>; shippedFrom?: string }> {
  const found = findShippedConfig()
  if (!found) return {}
  const loaded: { default?: unknown } = await import(pathToFileURL(found.compiled).href)
  return isTree(loaded.default) ? { shipped: loaded.default, shippedFrom: found.source } : {}
}
