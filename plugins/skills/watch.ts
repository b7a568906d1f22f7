import { statfsSync, statSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { basename, join } from 'node:path'

/** With fewer folders a look at all of them costs less than it is worth to watch them. */
export const MIN_WATCHED = 16
/** However quiet it is, the folders are looked at this often: the system drops events when there are too many. */
const MAX_QUIET_MS = 1000
/**
 * Types of file systems (`man 2 statfs`) that report every write to them: ext4, XFS, Btrfs, tmpfs, overlay, ZFS, F2FS.
 * What another machine writes to a network file system is not reported.
 */
const REPORTING = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010])

/** The name of the root among what is watched. */
const ROOT = ''

/**
 * Tells when nothing has changed in some folders, without looking at each. On Linux only: an event is ready there
 * before the writer goes on, so that a request which is sent after a change is read after its event. Elsewhere events
 * come late.
 */
export class FolderWatch implements Disposable {
  readonly #root: string
  readonly #now: () => number
  readonly #watchers = new Map<string, FSWatcher>()
  #failed = process.platform !== 'linux'
  #quietSince: number | undefined
  #rootInode: number | undefined
  /** `now`: milliseconds of a clock that only goes forward. */
  constructor(root: string, now: () => number = () => performance.now()) {
    this.#root = root
    this.#now = now
  }

  /** Whether nothing has changed since the list of `follow` was made. */
  isQuiet(): boolean {
    return (
      this.#quietSince !== undefined &&
      this.#now() - this.#quietSince < MAX_QUIET_MS &&
      this.#rootInode === inodeOf(this.#root)
    )
  }

  /** Watches the root and these folders in it. Called before they are looked at, so that no change is missed. */
  follow(names: readonly string[]): void {
    this.#quietSince = undefined
    const inode = inodeOf(this.#root)
    if (this.#failed || names.length < MIN_WATCHED || inode !== this.#rootInode) this[Symbol.dispose]()
    if (this.#failed || names.length < MIN_WATCHED) return
    this.#rootInode = inode
    // A folder that was made after the list and before its root was watched is in neither: then the next list counts.
    const isListComplete = this.#watchers.has(ROOT)
    try {
      if (!isListComplete && !REPORTING.has(statfsSync(this.#root).type)) return this.#giveUp()
      const wanted = new Set([ROOT, ...names])
      for (const [name, watcher] of this.#watchers) if (!wanted.has(name)) this.#end(name, watcher)
      for (const name of wanted) if (!this.#watchers.has(name)) this.#watchers.set(name, this.#watch(name))
    } catch {
      // Such as a limit of the system on watched folders: then each look reads the times of all files.
      return this.#giveUp()
    }
    if (isListComplete) this.#quietSince = this.#now()
  }

  #watch(name: string): FSWatcher {
    const folder = join(this.#root, name)
    const watcher = watch(folder, { persistent: false }, (_, file) => {
      this.#quietSince = undefined
      // The folder itself was moved or replaced: this watches what it was.
      if (file === basename(folder) || file === null) this.#end(name, watcher)
    })
    return watcher.on('error', () => this.#giveUp())
  }
  #end(name: string, watcher: FSWatcher): void {
    watcher.close()
    if (this.#watchers.get(name) === watcher) this.#watchers.delete(name)
  }
  #giveUp(): void {
    this.#failed = true
    this[Symbol.dispose]()
  }
  [Symbol.dispose](): void {
    this.#quietSince = undefined
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }
}

const inodeOf = (folder: string): number | undefined => statSync(folder, { throwIfNoEntry: false })?.ino
