import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { ConsolaInstance } from 'consola'
import { findEntry, fingerprint, isPluginFolder, pluginFoldersIn } from './folders.ts'
import type { Host } from './host.ts'

export interface WatchOptions {
  readonly host: Pick<Host, 'sync'>
  readonly log: ConsolaInstance
  /** Folders of plugin folders, or plugin folders themselves. */
  readonly roots: readonly string[]
  /** Plugin folders that are watched for changes only. */
  readonly folders: readonly string[]
  /** Quiet time after which a change counts as complete. */
  readonly settleMs?: number
}

/** A folder whose entry is gone may be in the middle of a save or a checkout: it gets this many quiet times to come back. */
const PATIENCE = 4

/** Keeps the host in step with its plugin folders until disposed. */
export async function watchPlugins({ host, log, roots, folders, settleMs = 60 }: WatchOptions): Promise<Disposable> {
  const watchers = new Map<string, FSWatcher>()
  const timers = new Map<string, NodeJS.Timeout>()
  /** What each plugin folder looked like when it was last handed to the host; absent: not a plugin then. */
  const seen = new Map<string, string>()
  let closed = false

  const open = (path: string, recursive: boolean, onChange: (name: string | null) => void): void => {
    if (closed || watchers.has(path)) return
    const watcher = watch(path, { recursive, persistent: false }, (_kind, name) => onChange(name))
    watcher.on('error', (error) => {
      log.debug(`watching ${path} ended`, error)
      drop(path)
    })
    watchers.set(path, watcher)
  }
  const drop = (path: string): void => {
    watchers.get(path)?.close()
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
      drop(folder)
      seen.delete(folder)
    } else {
      follow(folder)
      seen.set(folder, now)
    }
    // A change that fails is in the status and in the log of the host already.
    await host.sync(folder).catch(() => undefined)
  }
  const follow = (folder: string): void => open(folder, true, (name) => {
    if (name === null || !name.split('/').some((part) => part === 'node_modules' || part.startsWith('.'))) schedule(folder)
  })
  const adopt = async (folder: string): Promise<void> => {
    const now = await fingerprint(folder).catch(() => undefined /* gone meanwhile */)
    if (now === undefined) return
    seen.set(folder, now)
    follow(folder)
  }

  for (const folder of folders) await adopt(resolve(folder))
  for (const root of roots.map((path) => resolve(path))) {
    if (isPluginFolder(root)) {
      await adopt(root)
      // The folder itself may go and come back.
      open(dirname(root), false, (name) => { if (name === null || join(dirname(root), name) === root) schedule(root) })
      continue
    }
    await mkdir(root, { recursive: true })
    for (const folder of await pluginFoldersIn(root)) await adopt(folder)
    open(root, false, (name) => {
      if (name === null || name.startsWith('.')) return
      const folder = join(root, name)
      // Files may be written into a new folder after it was seen: from now on they are heard.
      try { follow(folder) } catch (error) { log.debug(`${folder} cannot be watched`, error) }
      schedule(folder)
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
