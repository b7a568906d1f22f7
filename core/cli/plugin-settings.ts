import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findShippedConfig } from './shipped-config.ts'
import type { HomeLocation } from './home-location.ts'

/** The part of the configuration that decides which commands there are. */
export interface PluginSettings {
  /** Folders of further plugins. */
  readonly paths: readonly string[]
  readonly disabled: readonly string[]
  /** Why the configuration could not be read. */
  readonly problem?: string
}

/**
 * Loading the configuration would double the time of `svc --help`, so it is loaded only where a source of it sets these
 * keys.
 */
export async function readPluginSettings(location: HomeLocation): Promise<PluginSettings> {
  if (!mayBeSet(location)) return { paths: [], disabled: [] }
  const { loadSettings } = await import('./settings.ts')
  const { ConfigError } = await import('../config/problem.ts')
  try {
    const { plugins } = (await loadSettings(location)).config
    return { paths: plugins.paths, disabled: plugins.disabled }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const effect = 'so plugins.paths and plugins.disabled have no effect'
    const problem = `the configuration cannot be read, ${effect}: ${error.message}`
    return { paths: [], disabled: [], problem }
  }
}

function mayBeSet({ home, configFile }: HomeLocation): boolean {
  if (configFile !== undefined || process.env['SVC_CONFIG']?.trim()) return true
  if (Object.keys(process.env).some((name) => name.startsWith('SVC_PLUGINS'))) return true
  const shipped = findShippedConfig()
  // Code can compute a value: only the compiled file of the repository is plain enough to be searched.
  const modules = ['ts', 'mts', 'js', 'mjs'].map((ending) => join(process.cwd(), `svc.config.${ending}`))
  if (modules.some((file) => existsSync(file) && file !== shipped?.source)) return true
  return [join(home, 'config.toml'), ...(shipped ? [shipped.compiled] : [])].some((file) => setsPlugins(file))
}

function setsPlugins(file: string): boolean {
  if (!existsSync(file)) return false
  try {
    const text = readFileSync(file, 'utf8').replaceAll(/\b(?:paths|disabled)['"]?\s*[:=]\s*\[\s*\]/g, '')
    return /\b(?:paths|disabled)\b|\\u/i.test(text)
  } catch {
    return true /* Loading it says what is wrong. */
  }
}
