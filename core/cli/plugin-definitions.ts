import { join } from 'node:path'
import type { Config } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import type { AnyPlugin } from '../host/define.ts'
import { builtInFolders, namedFolders } from '../host/folders.ts'
import { createLoader } from '../host/loader.ts'
import { findMeant, findOwn, ownKeys, parseSection } from '../host/section.ts'
import { note } from './output.ts'

/** What the plugins of a home define. None of them is set up. */
export async function readDefinitions(home: string, paths: readonly string[]): Promise<readonly AnyPlugin[]> {
  const builtIns = await builtInFolders()
  const loader = createLoader({ builtIns: new Set(builtIns), cacheDir: join(home, 'cache', 'plugins') })
  const found: AnyPlugin[] = []
  for (const folder of [...builtIns, ...(await namedFolders([...paths, join(home, 'plugins')]))]) {
    try {
      found.push(await loader.load(folder, false))
    } catch (error) {
      // A broken plugin must not hide the keys of the others.
      note(`warning: ${folder} is left out: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return found
}

/** Why a key below `plugins` is none, with the one that was meant; `undefined` when a plugin reads it. */
export function findUnknown(
  definitions: readonly AnyPlugin[],
  [, name = '', ...rest]: readonly string[],
): string | undefined {
  const definition = definitions.find((one) => one.name === name)
  if (definition)
    return findOwn(definition, rest)
      ? undefined
      : `unknown key; the plugin knows ${ownKeys(definition).join(', ') || 'none'}${suggest(findMeant(definition, rest))}`
  const names = definitions.map((one) => one.name)
  return `there is no plugin "${name}"${suggest(findNearest(name, names))}`
}

/** Throws `ConfigError` for a key below `[plugins.<name>]` that no plugin reads, and for a value its plugin would refuse. */
export function checkPluginKey(
  definitions: readonly AnyPlugin[],
  config: Config,
  path: readonly string[],
  value: unknown,
): void {
  const key = path.join('.')
  const message = findUnknown(definitions, path)
  if (message !== undefined) throw new ConfigError([{ file: 'config set', key, message }])
  const [, name = '', ...rest] = path
  const definition = definitions.find((one) => one.name === name)
  const own: unknown = config.plugins[name]
  if (definition)
    parseSection(definition, withValue(isTable(own) ? own : {}, rest, value), new Map([[key, 'config set']]))
}
const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
function withValue(tree: Readonly<Record<string, unknown>>, [key, ...rest]: readonly string[], value: unknown): object {
  if (key === undefined) return tree
  const old = tree[key]
  return { ...tree, [key]: rest.length === 0 ? value : withValue(isTable(old) ? old : {}, rest, value) }
}
