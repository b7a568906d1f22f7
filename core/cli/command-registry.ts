import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { namedFolders } from '../host/folders.ts'
import { loadBuiltIns } from './built-ins.ts'
import { coreCommands } from './core-commands.ts'
import type { CommandEntry, CommandTree } from './command.ts'
import type { HomeLocation } from './home-location.ts'
import { toPluginCli } from './plugin-cli-shape.ts'
import type { PluginCli } from './plugin-cli.ts'
import { readPluginSettings } from './plugin-settings.ts'
import type { PluginSettings } from './plugin-settings.ts'
import { messageOf } from '../errors/message.ts'

/** A command and where it comes from. */
export interface Origin {
  readonly entry: CommandEntry
  /** Undefined for the daemon itself. */
  readonly plugin: string | undefined
}

/** The commands of the daemon and of every plugin that is enabled. */
export interface CommandRegistry {
  readonly commands: CommandTree
  /** Commands of disabled plugins. */
  readonly disabled: ReadonlyMap<string, Origin>
  /** Commands that several plugins bring, each with the names of the plugins. */
  readonly conflicts: ReadonlyMap<string, readonly string[]>
  /** The enabled plugins. */
  readonly plugins: readonly PluginCli[]
  /** What could not be loaded, and why; each costs only the plugin that it names. */
  readonly problems: readonly string[]
}

/**
 * The built-in commands alone, which need no plugin folder to be searched; `undefined` when `name` is not one of them.
 */
export async function findBuiltIn(name: string, location: HomeLocation): Promise<CommandRegistry | undefined> {
  const builtIns = await loadBuiltIns()
  const isBuiltIn = builtIns.some(({ commands = {} }) => Object.hasOwn(commands, name))
  return isBuiltIn ? collect(builtIns, [], await readPluginSettings(location)) : undefined
}

/** Every command that can be run with this home. No daemon is asked and no plugin evaluated. */
export async function loadRegistry(location: HomeLocation): Promise<CommandRegistry> {
  const [builtIns, settings] = await Promise.all([loadBuiltIns(), readPluginSettings(location)])
  const problems: string[] = settings.problem === undefined ? [] : [settings.problem]
  const installed: PluginCli[] = []
  for (const file of await findInstalled(location, settings)) {
    try {
      installed.push(await loadInstalled(file, location))
    } catch (error) {
      problems.push(`the commands of ${file} are left out: ${messageOf(error)}`)
    }
  }
  const registry = collect(builtIns, installed, settings)
  return { ...registry, problems: [...problems, ...registry.problems] }
}

/** The files in plugin folders outside the build that add to the command line. */
async function findInstalled({ home }: HomeLocation, { paths }: PluginSettings): Promise<readonly string[]> {
  const folders = await namedFolders([...paths, join(home, 'plugins')])
  return folders.flatMap((folder) => {
    const file = ['cli.js', 'cli.ts'].map((name) => join(folder, name)).find((path) => existsSync(path))
    return file === undefined ? [] : [file]
  })
}

async function loadInstalled(file: string, { home }: HomeLocation): Promise<PluginCli> {
  const [{ openTranspiler }, cli] = await Promise.all([import('../host/transpiler.ts'), import('svc/cli')])
  // A command that only asks must not make a home.
  const cacheDir = existsSync(home) ? join(home, 'cache', 'plugins') : undefined
  const jiti = await openTranspiler(cacheDir, { 'svc/cli': cli })
  return toPluginCli(await jiti.import(file))
}

function collect(
  builtIns: readonly PluginCli[],
  installed: readonly PluginCli[],
  settings: PluginSettings,
): CommandRegistry {
  const all = [...builtIns, ...installed]
  const isDisabled = ({ name }: PluginCli): boolean => settings.disabled.includes(name)
  const enabled = all.filter((cli) => !isDisabled(cli))
  const taken = new Map<string, Origin>(
    Object.entries(coreCommands).map(([name, entry]) => [name, { entry, plugin: undefined }]),
  )
  const problems: string[] = []
  const conflicts = new Map<string, readonly string[]>()
  const isShipped = new Set([undefined, ...builtIns.map(({ name }) => name)])
  for (const cli of enabled) {
    for (const [name, origin] of originsOf(cli)) {
      const owner = taken.get(name)
      const merged = owner && isShipped.has(owner.plugin) && isShipped.has(cli.name) && mergeGroups(owner, origin)
      if (!owner) taken.set(name, origin)
      else if (merged) taken.set(name, merged)
      else if (isShipped.has(owner.plugin)) problems.push(describeTaken(name, cli.name, owner.plugin))
      else conflicts.set(name, [...(conflicts.get(name) ?? [owner.plugin ?? '']), cli.name])
    }
  }
  for (const [name, plugins] of conflicts) problems.push(describeConflict(name, plugins))
  return {
    commands: Object.fromEntries(
      [...taken].filter(([name]) => !conflicts.has(name)).map(([name, { entry }]) => [name, entry]),
    ),
    disabled: new Map(all.filter(isDisabled).flatMap(originsOf)),
    conflicts,
    plugins: enabled,
    problems,
  }
}

function originsOf({ name: plugin, commands = {} }: PluginCli): [string, Origin][] {
  return Object.entries(commands).map(([name, entry]) => [name, { entry, plugin }])
}
/** Built-in plugins may share a group, as long as no command of it is in both. */
function mergeGroups(owner: Origin, other: Origin): Origin | undefined {
  const [one, two] = [owner.entry.commands, other.entry.commands]
  if (!one || !two || Object.keys(two).some((name) => Object.hasOwn(one, name))) return undefined
  return { ...owner, entry: { ...other.entry, ...owner.entry, commands: { ...one, ...two } } }
}
function describeTaken(command: string, plugin: string, owner: string | undefined): string {
  const of = owner === undefined ? 'svc itself' : `the built-in plugin "${owner}"`
  return `the command "${command}" of plugin "${plugin}" is left out: it is a command of ${of}`
}
function describeConflict(command: string, plugins: readonly string[]): string {
  return `the command "${command}" comes from more than one plugin: ${plugins.map((name) => `"${name}"`).join(', ')}`
}
