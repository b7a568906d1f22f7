import { join } from 'node:path'
import { nest, overlay } from '../config/layer.ts'
import type { Config, LoadedConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { findSchema, knownKeys } from '../config/shape.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import type { AnyPlugin } from '../host/define.ts'
import { builtInFolders, namedFolders } from '../host/folders.ts'
import { createLoader } from '../host/loader.ts'
import { findMeant, parseSections } from '../host/section.ts'
import { note } from './output.ts'
import { loadSettings } from './settings.ts'
import type { HomeLocation } from './home-location.ts'
import { messageOf } from '../errors/message.ts'

/** What the plugins of a home define. None of them is set up. `unread` is told of each that cannot be read. */
export async function readDefinitions(
  home: string,
  paths: readonly string[],
  // A broken plugin must not hide the keys of the others.
  unread = (folder: string, why: string): void => note(`warning: ${folder} is left out: ${why}`),
): Promise<readonly AnyPlugin[]> {
  const builtIns = await builtInFolders()
  const loader = createLoader({ builtIns: new Set(builtIns), cacheDir: join(home, 'cache', 'plugins') })
  const found: AnyPlugin[] = []
  for (const folder of [...builtIns, ...(await namedFolders([...paths, join(home, 'plugins')]))]) {
    try {
      found.push(await loader.load(folder, false))
    } catch (error) {
      unread(folder, messageOf(error))
    }
  }
  return found
}

/**
 * The configuration with the sections of its plugins, and their definitions. No plugin is set up. Throws `ConfigError`.
 */
export async function loadWithPlugins(
  location: HomeLocation,
): Promise<{ readonly loaded: LoadedConfig; readonly definitions: readonly AnyPlugin[] }> {
  const core = await loadSettings(location)
  const definitions = await readDefinitions(location.home, core.config.plugins.paths)
  return { loaded: core.complete(definitions), definitions }
}

/** Why a key below `plugins` is none, with the one that was meant; `undefined` when a plugin reads it. */
export function findUnknown(
  definitions: readonly AnyPlugin[],
  [, name = '', ...rest]: readonly string[],
): string | undefined {
  const definition = definitions.find((one) => one.name === name)
  if (!definition) {
    const names = definitions.map((one) => one.name)
    return `there is no plugin "${name}"${suggest(findNearest(name, names))}`
  }
  if (findSchema(definition.config, rest)) return undefined
  const known = knownKeys(definition.config).join(', ') || 'none'
  return `unknown key; the plugin knows ${known}${suggest(findMeant(definition, rest))}`
}

/** Throws `ConfigError` for a key that no plugin reads, and for a value its owner would refuse. */
export function checkPluginKey(
  definitions: readonly AnyPlugin[],
  config: Config,
  path: readonly string[],
  value: unknown,
): void {
  const [section = '', name = ''] = path
  const isOwn = section === 'plugins' && path.length > 2
  const message = isOwn ? findUnknown(definitions, path) : undefined
  const key = path.join('.')
  if (message !== undefined) throw new ConfigError([{ file: 'config set', key, message }])
  const owner = definitions.find((one) =>
    isOwn ? one.name === name : Object.hasOwn((one.sections ?? {}) as object, section),
  )
  if (owner) parseSections(owner, overlay(config, nest(path, value)) as Config, new Map([[key, 'config set']]))
}
