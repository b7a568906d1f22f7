import { isObject } from '../schema/object.ts'
import type { CommandEntry } from './command.ts'
import type { PluginCli } from './plugin-cli.ts'

/** The default export of a plugin's `cli.ts`, checked. Throws an error that says what is wrong where. */
export function toPluginCli(exported: unknown): PluginCli {
  const cli = isObject(exported) ? exported['default'] : undefined
  if (!isObject(cli)) throw new Error('its default export has to be what defineCli() returns')
  if (typeof cli['name'] !== 'string' || cli['name'] === '') throw new Error('name: expected the name of the plugin')
  for (const [name, entry] of entriesOf(cli, 'commands')) checkEntry([name], entry)
  for (const [name, entry] of entriesOf(cli, 'checks')) checkLoad(`checks.${name}`, entry)
  if (cli['status'] !== undefined) checkLoad('status', cli['status'])
  return cli as unknown as PluginCli
}

/** The name becomes a word of shell scripts, and completion knows two words. */
function checkEntry(path: readonly string[], entry: unknown): asserts entry is CommandEntry {
  const where = `commands.${path.join('.')}`
  if (path.some((name) => !/^[a-z][a-z0-9-]*$/.test(name)))
    throw new Error(`${where}: a name consists of small letters, digits and hyphens`)
  if (path.length > 2) throw new Error(`${where}: a command has at most two words`)
  if (!isObject(entry) || typeof entry['summary'] !== 'string') throw new Error(`${where}: summary is missing`)
  const below = entriesOf(entry, 'commands')
  if (entry['load'] === undefined && below.length === 0) throw new Error(`${where}: load or commands is missing`)
  if (entry['load'] !== undefined) checkLoad(where, entry)
  for (const [name, inner] of below) checkEntry([...path, name], inner)
}
function checkLoad(where: string, entry: unknown): void {
  if (!isObject(entry) || typeof entry['load'] !== 'function') throw new Error(`${where}: load has to be a function`)
}
function entriesOf(parent: Readonly<Record<string, unknown>>, key: string): [string, unknown][] {
  const value = parent[key]
  if (value === undefined) return []
  if (!isObject(value)) throw new Error(`${key}: expected an object`)
  return Object.entries(value)
}
