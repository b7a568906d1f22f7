import { statSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import type { ConsolaInstance } from 'consola'
import { directoriesOf, findEntry, fingerprint, isForeign, isPluginFolder, pluginFoldersIn } from './folders.ts'
import type { Host } from './host.ts'

export interface WatchOptions {
  readonly host: Pick<Host, 'sync'>
  readonly log: ConsolaInstance
  /** Folders of plugin folders, or plugin folders themselves. */
  readonly roots: readonly string[]
  /** Plugin folders that are watched for changes only. */
  readonly folders: readonly string[]
  /**
   * Those the host has read, with the fingerprint each had before. What came, went or changed since is told to it.
   * Default: all that are there, as they are.
   */
  readonly known?: ReadonlyMap<string, string>
  /** Quiet time after which a change counts as complete. */
  readonly settleMs?: number
}

/**
 * A folder whose entry is gone may be in the middle of a save or a checkout: it gets this many quiet times to come
 * back.
 */
const PATIENCE = 4

/** Keeps the host in step with its plugin folders until disposed. */
export async function watchPlugins({
  host,
  log,
  roots,
  folders,
  known,
  settleMs = 60,
}: WatchOptions): Promise<Disposable> {
  const watchers = new Map<string, { readonly watcher: FSWatcher; readonly inode: number }>()
  const timers = new Map<string, NodeJS.Timeout>()
  /** What each plugin folder looked like when it was last handed to the host; absent: not a plugin then. */
  const seen = new Map<string, string>()
  let closed = false

  const open = (path: string, onChange: (name: string | null) => void): void => {
    const inode = statSync(path, { throwIfNoEntry: false })?.ino
    // A folder that went and came back under its name is another one: the old watcher hears nothing more.
    if (watchers.get(path)?.inode !== inode) drop(path)
    if (closed || inode === undefined || watchers.has(path)) return
    const watcher = watch(path, { persistent: false }, (_kind, name) => onChange(name))
    watcher.on('error', (error) => {
      log.debug(`watching ${path} ended`, error)
      drop(path)
    })
    watchers.set(path, { watcher, inode })
  }
  const drop = (path: string): void => {
    watchers.get(path)?.watcher.close()
    watchers.delete(path)
  }
  const schedule = (folder: string, misses = 0): void => {
    if (closed) return
    clearTimeout(timers.get(folder))
    const timer = setTimeout(() => {
      timers.delete(folder)
      settle(folder, misses).catch((error: unknown) => log.error(`cannot follow the changes in ${folder}`, error))
    }, settleMs)
    timer.unref()
    timers.set(folder, timer)
  }
  const settle = async (folder: string, misses: number): Promise<void> => {
    const now = findEntry(folder) ? await fingerprint(folder).catch(() => undefined /* gone meanwhile */) : undefined
    if (closed || now === seen.get(folder)) return
    if (now === undefined) {
      if (misses < PATIENCE) return schedule(folder, misses + 1)
      for (const path of watchers.keys()) if (path === folder || path.startsWith(folder + sep)) drop(path)
      seen.delete(folder)
    } else {
      await follow(folder)
      seen.set(folder, now)
    }
    // A change that fails is in the status and in the log of the host already.
    await host.sync(folder).catch(() => undefined)
  }
  // Each directory by itself: Node's recursive watching on Linux watches files, and loses one that an editor replaces.
  const follow = async (folder: string): Promise<void> => {
    for (const directory of await directoriesOf(folder))
      open(directory, (name) => {
        if (name === null || !isForeign(name)) schedule(folder)
      })
  }
  const adopt = async (folder: string): Promise<void> => {
    const now = await fingerprint(folder).catch(() => undefined /* gone meanwhile */)
    if (now === undefined) return
    seen.set(folder, known?.get(folder) ?? now)
    await follow(folder)
    if (seen.get(folder) !== now) schedule(folder)
  }

  for (const folder of folders) await adopt(resolve(folder))
  for (const root of roots.map((path) => resolve(path))) {
    if (isPluginFolder(root)) {
      await adopt(root)
      // The folder itself may go and come back.
      open(dirname(root), (name) => {
        if (name === null || join(dirname(root), name) === root) schedule(root)
      })
      continue
    }
    await mkdir(root, { recursive: true })
    const there = await pluginFoldersIn(root, { files: true })
    for (const folder of there) {
      if (!known || known.has(folder)) await adopt(folder)
      else schedule(folder)
    }
    for (const [folder, before] of known ?? []) {
      if (dirname(folder) !== root || there.includes(folder)) continue
      seen.set(folder, before)
      schedule(folder)
    }
    open(root, (name) => {
      if (name === null || isForeign(name)) return
      const folder = join(root, name)
      // Files may be written into a new folder after it was seen: from now on they are heard.
      follow(folder)
        .catch((error: unknown) => log.debug(`${folder} cannot be watched`, error))
        .finally(() => schedule(folder))
    })
  }

  return {
    [Symbol.dispose]() {
      closed = true
      for (const timer of timers.values()) clearTimeout(timer)
      for (const path of watchers.keys()) drop(path)
    },
  }
}
