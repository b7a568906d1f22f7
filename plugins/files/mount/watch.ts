import { readFile, stat } from 'node:fs/promises'
import type { Daemon } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import { hasCode } from '../disk.ts'

export interface FolderWatchDeps {
  /** That daemons share. */
  readonly folder: string
  /** Its file that says which folder it is, and what was in it at the start. */
  readonly marker: string
  readonly id: string
  readonly daemon: Pick<Daemon, 'setUnready'>
  readonly log: Logger
  /** Called when the folder is gone, and when it is back. */
  changed(isThere: boolean): Promise<void>
}

/**
 * Whether the folder that daemons share is still mounted. What is written to the empty folder below a mount point, or to
 * another folder in its place, no other daemon sees, and nobody finds once it is mounted again.
 */
export class FolderWatch {
  readonly #deps: FolderWatchDeps
  /** Which file the id was last read from. */
  #read = ''
  #problem: string | undefined

  constructor(deps: FolderWatchDeps) {
    this.#deps = deps
  }

  /** Throws `service_unavailable` while the folder is not the one of the start. */
  async check(): Promise<void> {
    const problem = await this.#find()
    if (problem !== this.#problem) await this.#note(problem)
    if (problem !== undefined)
      throw new Refusal(
        'service_unavailable',
        'The workspace cannot be reached: the folder of plugins.files.path is not mounted at this daemon',
        { retryAfterSecs: 5 },
      )
  }

  /** For a look at times: notes what it finds. */
  async look(): Promise<void> {
    try {
      await this.check()
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
    }
  }

  async #find(): Promise<string | undefined> {
    const { marker, id } = this.#deps
    try {
      const { dev, ino, mtimeMs } = await stat(marker)
      const file = `${dev} ${ino} ${mtimeMs}`
      if (file === this.#read) return undefined
      if ((await readFile(marker, 'utf8')) !== id) return 'another folder is in its place'
      this.#read = file
      return undefined
    } catch (error) {
      this.#read = ''
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return 'it has no file .mount'
      return error instanceof Error && 'code' in error ? `${String(error.code)} of .mount` : 'its .mount cannot be read'
    }
  }

  async #note(problem: string | undefined): Promise<void> {
    const { daemon, folder, log, changed } = this.#deps
    this.#problem = problem
    const shown =
      problem === undefined
        ? undefined
        : `plugins.files.path: ${folder} is not the folder that was there at the start (${problem}): mount it again; ` +
          'files are refused until then'
    daemon.setUnready('files', shown)
    if (shown === undefined) log.info(`plugins.files.path: ${folder} is there again`)
    else log.error(shown)
    await changed(problem === undefined).catch((error: unknown) =>
      log.warn('the other daemons were not told whether plugins.files.path is mounted', error),
    )
  }
}

/** What a daemon that cannot reach its folder writes instead of the id of the folder. */
export const missing = (id: string): string => `missing ${id}`
