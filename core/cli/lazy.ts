/**
 * What commands need of the daemon's code, imported when it is called: a list of commands must not load the
 * configuration or a database.
 */
import type { ClientArgs } from './connect.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { CopiedDatabase, CopyDatabaseRequest } from './copy-database.ts'
import type { HomeLocation } from './home-location.ts'
import type { Joined, JoinRequest } from './join-database.ts'
import type { OfflineOptions } from './offline.ts'
import type { Rehearsal, RehearsalOptions } from './rehearse-version.ts'
import type { Work } from './stopped-database.ts'
import type { StoppedHome } from './stopped-home.ts'

/** The configuration as the daemon of this home gets it. Throws `ConfigError`. */
export async function loadSettings(location: HomeLocation): Promise<LoadedConfig> {
  const settings = await import('./settings.ts')
  return await settings.loadSettings(location)
}

/** See `StoppedHome`. */
export async function openStoppedHome(location: HomeLocation): Promise<StoppedHome> {
  const home = await import('./stopped-home.ts')
  return await home.openStoppedHome(location)
}

/**
 * Runs the function `work` of `offline` in the definition of a built-in plugin on the data of a home, whether or not a
 * daemon runs. It reads the database; the plugin is not set up. Throws a `Failure` when there is no such function or
 * the database cannot be read.
 */
export async function workOffline(
  plugin: string,
  work: string,
  home: OfflineOptions,
  options: Readonly<Record<string, string | boolean | undefined>>,
): Promise<unknown> {
  const offline = await import('./offline.ts')
  return await offline.workOffline(plugin, work, home, options)
}

/** Lets offline work write to the database of a home; see `writeOffline` there. Throws a `Failure`. */
export async function writeOffline<T>(
  location: HomeLocation,
  plugins: readonly string[],
  use: (work: Work) => Promise<T>,
): Promise<T> {
  const stopped = await import('./stopped-database.ts')
  return await stopped.writeOffline(location, plugins, use)
}

/** Sets a home up for a PostgreSQL database that other daemons use; see `joinDatabase` there. Throws a `Failure`. */
export async function joinDatabase(location: HomeLocation, request: JoinRequest): Promise<Joined> {
  const join = await import('./join-database.ts')
  return await join.joinDatabase(location, request)
}

/** Copies the database of a home to a PostgreSQL server; see `copyDatabase` there. Throws a `Failure`. */
export async function copyDatabase(location: HomeLocation, request: CopyDatabaseRequest): Promise<CopiedDatabase> {
  const copy = await import('./copy-database.ts')
  return await copy.copyDatabase(location, request)
}

/** Tries this version on a copy of the home; see `rehearseVersion` there. Throws a `Failure`. */
export async function rehearseVersion(args: ClientArgs, options: RehearsalOptions): Promise<Rehearsal> {
  const rehearsal = await import('./rehearse-version.ts')
  return await rehearsal.rehearseVersion(args, options)
}

/** The line editor, the screen and the Markdown view of an interactive command. */
export const loadTerminal = () => import('./terminal/terminal.ts')

/** Lets a person edit a file; see `editFile` there. Throws a `Failure`. */
export async function editFile(file: string): Promise<void> {
  await (await import('./editor.ts')).editFile(file)
}

/** Opens a page in the browser of this machine; `false` where there is none. */
export async function openBrowser(address: string): Promise<boolean> {
  return (await import('../process/browser.ts')).openBrowser(address, process.env)
}
