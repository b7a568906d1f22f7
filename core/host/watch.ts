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
  /** Plugin folders that are only watched for changes. */
  readonly folders: readonly string[]
  /**
   * Folders the host has read, with their fingerprints at that time. The host reads again what was added, removed or
   * changed since. Default: all existing folders, as they are now.
   */
  readonly known?: ReadonlyMap<string, string>
  /** Milliseconds without a further change after which a change counts as complete. */
  readonly settleMs?: number
}

/** How often a folder without its entry is checked again: it may be in the middle of a save or a checkout. */
const MAX_MISSES = 4

/** Keeps the host in step with its plugin folders until disposed. */
export async function watchPlugins(options: WatchOptions): Promise<Disposable> {
  const watcher = new FolderWatcher(options)
  await watcher.start()
  return watcher
}

class FolderWatcher implements Disposable {
  readonly #options: WatchOptions
  readonly #settleMs: number
  readonly #watchers = new Map<string, { readonly watcher: FSWatcher; readonly inode: number }>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  /** Fingerprint of each plugin folder when the host last read it. Absent: it was no plugin then. */
  readonly #fingerprints = new Map<string, string>()
  #closed = false

  constructor(options: WatchOptions) {
    this.#options = options
    this.#settleMs = options.settleMs ?? 60
  }

  async start(): Promise<void> {
    for (const folder of this.#options.folders) await this.#adopt(resolve(folder))
    for (const root of this.#options.roots.map((path) => resolve(path))) {
      if (isPluginFolder(root)) await this.#watchPluginFolder(root)
      else await this.#watchParentFolder(root)
    }
  }

  [Symbol.dispose](): void {
    this.#closed = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    for (const path of this.#watchers.keys()) this.#close(path)
  }

  async #watchPluginFolder(folder: string): Promise<void> {
    await this.#adopt(folder)
    // The folder itself may be removed and created again.
    this.#open(dirname(folder), (name) => {
      if (name === null || join(dirname(folder), name) === folder) this.#schedule(folder)
    })
  }

  async #watchParentFolder(parent: string): Promise<void> {
    const { known } = this.#options
    await mkdir(parent, { recursive: true })
    const existing = await pluginFoldersIn(parent, { files: true })
    for (const folder of existing) {
      if (!known || known.has(folder)) await this.#adopt(folder)
      else this.#schedule(folder)
    }
    for (const [folder, before] of known ?? []) {
      if (dirname(folder) !== parent || existing.includes(folder)) continue
      this.#fingerprints.set(folder, before)
      this.#schedule(folder)
    }
    this.#open(parent, (name) => {
      if (name === null || isForeign(name)) return
      const folder = join(parent, name)
      // Files may be written into a new folder later: watch it from now on.
      this.#watchDirectories(folder)
        .catch((error: unknown) => this.#options.log.debug(`${folder} cannot be watched`, error))
        .finally(() => this.#schedule(folder))
    })
  }

  /** Watches a folder that the host has read, and schedules a check if it changed since. */
  async #adopt(folder: string): Promise<void> {
    const now = await fingerprint(folder).catch(() => undefined /* removed meanwhile */)
    if (now === undefined) return
    this.#fingerprints.set(folder, this.#options.known?.get(folder) ?? now)
    await this.#watchDirectories(folder)
    if (this.#fingerprints.get(folder) !== now) this.#schedule(folder)
  }

  /**
   * Watches each directory separately: on Linux, Node's recursive watcher watches single files and loses one that an
   * editor replaces.
   */
  async #watchDirectories(folder: string): Promise<void> {
    for (const directory of await directoriesOf(folder))
      this.#open(directory, (name) => {
        if (name === null || !isForeign(name)) this.#schedule(folder)
      })
  }

  #open(path: string, onChange: (name: string | null) => void): void {
    const inode = statSync(path, { throwIfNoEntry: false })?.ino
    // A folder that was replaced has another inode, and the old watcher reports nothing of it.
    if (this.#watchers.get(path)?.inode !== inode) this.#close(path)
    if (this.#closed || inode === undefined || this.#watchers.has(path)) return
    const watcher = watch(path, { persistent: false }, (_kind, name) => onChange(name))
    watcher.on('error', (error) => {
      this.#options.log.debug(`watching ${path} ended`, error)
      this.#close(path)
    })
    this.#watchers.set(path, { watcher, inode })
  }
  #close(path: string): void {
    this.#watchers.get(path)?.watcher.close()
    this.#watchers.delete(path)
  }

  #schedule(folder: string, misses = 0): void {
    if (this.#closed) return
    clearTimeout(this.#timers.get(folder))
    const timer = setTimeout(() => {
      this.#timers.delete(folder)
      this.#settle(folder, misses).catch((error: unknown) =>
        this.#options.log.error(`cannot follow the changes in ${folder}`, error),
      )
    }, this.#settleMs)
    timer.unref()
    this.#timers.set(folder, timer)
  }

  async #settle(folder: string, misses: number): Promise<void> {
    const now = findEntry(folder) ? await fingerprint(folder).catch(() => undefined /* removed meanwhile */) : undefined
    if (this.#closed || now === this.#fingerprints.get(folder)) return
    if (now === undefined) {
      if (misses < MAX_MISSES) return this.#schedule(folder, misses + 1)
      for (const path of this.#watchers.keys()) if (path === folder || path.startsWith(folder + sep)) this.#close(path)
      this.#fingerprints.delete(folder)
    } else {
      await this.#watchDirectories(folder)
      this.#fingerprints.set(folder, now)
    }
    // The host has logged a failure and shows it in the status of the plugin.
    await this.#options.host.sync(folder, now).catch(() => undefined)
  }
}
