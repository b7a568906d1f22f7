import { readdir, stat } from 'node:fs/promises'
import { existsSync, readdirSync, statSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const entries = ['index.js', 'index.ts'] as const

/** A file that may be a single-file plugin; a plugin of several files is a folder. */
function isModule(path: string): boolean {
  return isModuleName(basename(path)) && (statSync(path, { throwIfNoEntry: false })?.isFile() ?? false)
}
function isModuleName(name: string): boolean {
  return /\.(m?ts|m?js)$/.test(name) && !/\.(d|test|spec)\.m?[jt]s$/.test(name) && !isForeign(name)
}

/**
 * The file a plugin is loaded from: the file itself, or the entry of its folder, built code before source. `undefined`
 * if it is not a plugin.
 */
export function findEntry(folder: string): string | undefined {
  if (isModule(folder)) return folder
  return entries.map((name) => join(folder, name)).find((file) => existsSync(file))
}

/**
 * Plugin folders directly in a folder, sorted by name; with `files`, also single-file plugins. Empty if the folder does
 * not exist.
 */
export async function pluginFoldersIn(parent: string, { files = false } = {}): Promise<readonly string[]> {
  return list(parent)
    .filter(
      (entry) =>
        (entry.isDirectory() || entry.isSymbolicLink() || (files && entry.isFile() && isModuleName(entry.name))) &&
        !entry.name.startsWith('.'),
    )
    .map((entry) => join(parent, entry.name))
    .filter((folder) => findEntry(folder) !== undefined)
    .sort()
}

/** Synchronous: one small folder, read while nothing else can run. */
function list(parent: string): readonly Dirent[] {
  try {
    return readdirSync(parent, { withFileTypes: true })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw error
  }
}

export function isPluginFolder(folder: string): boolean {
  return findEntry(folder) !== undefined
}

/** The plugin folders that these paths name: a plugin folder itself, or the plugin folders in another folder. */
export async function namedFolders(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    paths
      .map((path) => resolve(path))
      .map((path) => (isPluginFolder(path) ? [path] : pluginFoldersIn(path, { files: true }))),
  )
  return found.flat()
}

/** Folders of the plugins that ship with the daemon: built code beside `dist/svc.js`, sources in the repository. */
export function builtInParents(): readonly string[] {
  const here = dirname(fileURLToPath(import.meta.url))
  // Built code is in dist/ or dist/core/, this file in core/host/.
  for (const root of [here, dirname(here)]) if (existsSync(join(root, 'build.json'))) return [join(root, 'plugins')]
  const repository = dirname(dirname(here))
  return [join(repository, 'plugins'), join(repository, 'adapters/providers'), join(repository, 'adapters/channels')]
}

export async function builtInFolders(): Promise<readonly string[]> {
  // Every folder in the build is a plugin, so a start does not look into them.
  return (
    await Promise.all(
      builtInParents().map((parent) =>
        existsSync(togetherFile(parent))
          ? list(parent)
              .filter((entry) => entry.isDirectory())
              .map((entry) => `${parent}${sep}${entry.name}`)
              .sort()
          : pluginFoldersIn(parent),
      ),
    )
  ).flat()
}

/** The file of a build that contains all plugins of a folder. */
export function togetherFile(parent: string): string {
  return `${parent}.js`
}

/** Names in a plugin folder that are not its code: dependencies, hidden files, backup files of editors. */
export function isForeign(name: string): boolean {
  return name === 'node_modules' || name.startsWith('.') || /~$|\.(swp|tmp)$/.test(name)
}

const DEPTH = 8
/** A plugin folder and the folders of code below it; empty if it no longer exists. */
export async function directoriesOf(folder: string, depth = 0): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(
    () => undefined /* gone meanwhile, or no folder */,
  )
  if (!entries) return []
  const inner = entries.filter((entry) => entry.isDirectory() && !isForeign(entry.name) && depth < DEPTH)
  return [
    folder,
    ...(await Promise.all(inner.map((entry) => directoriesOf(join(folder, entry.name), depth + 1)))).flat(),
  ]
}

/** Changes with every code file of a plugin, and not with other files. Throws if the folder no longer exists. */
export async function fingerprint(folder: string): Promise<string> {
  if (isModule(folder)) return line(folder)
  const directories = await directoriesOf(folder)
  const lines = await Promise.all(
    directories.map(async (directory) => {
      const entries = await readdir(directory, { withFileTypes: true })
      return Promise.all(
        entries
          .filter((entry) => !entry.isDirectory() && !isForeign(entry.name))
          .map((entry) => line(join(directory, entry.name))),
      )
    }),
  )
  return lines.flat().sort().join('\n')
}
/** Fingerprints of the folders that exist. */
export async function fingerprints(folders: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const all = await Promise.all(
    folders.map(
      async (folder) => [folder, await fingerprint(folder).catch(() => undefined /* gone meanwhile */)] as const,
    ),
  )
  return new Map(all.flatMap(([folder, found]) => (found === undefined ? [] : [[folder, found] as const])))
}

async function line(path: string): Promise<string> {
  const facts = await stat(path).catch(() => undefined /* gone between the listing and now, or a dead link */)
  return `${path} ${facts?.size} ${facts?.mtimeMs} ${facts?.ino}`
}
