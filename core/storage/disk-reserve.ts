import { existsSync, unlinkSync } from 'node:fs'
import { open, rename, rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

const BYTES = 4_194_304
/** Written in pieces: memory of the whole size would stay until a full collection. */
const PIECE_BYTES = 65_536
/** Free space required before the reserve is created, so that creating it does not fill the disk. */
const MIN_FREE_BYTES = 67_108_864
const RETRY_MS = 5_000

/**
 * A file of 4 MiB that is deleted when the disk is full, so that the daemon can still write what a clean shutdown
 * needs. It is created again when there is space. Dispose it to stop; disposal awaits a creation in progress.
 */
export class DiskReserve implements AsyncDisposable {
  readonly #file: string
  readonly #log: { warn(message: string, facts?: object): void; info(message: string): void }
  readonly #minFreeBytes: number
  #timer: NodeJS.Timeout | undefined
  #creating: Promise<boolean> | undefined
  #ended = false

  constructor(
    file: string,
    log: { warn(message: string, facts?: object): void; info(message: string): void },
    minFreeBytes = MIN_FREE_BYTES,
  ) {
    this.#file = file
    this.#log = log
    this.#minFreeBytes = minFreeBytes
  }

  get held(): boolean {
    return existsSync(this.#file)
  }

  /** Creates the file if it is missing and there is space; whether it exists then. Never rejects. */
  create(): Promise<boolean> {
    if (this.#ended) return Promise.resolve(false)
    this.#creating ??= this.#createFile().finally(() => {
      this.#creating = undefined
    })
    return this.#creating
  }

  /** Deletes the file at once because the disk is full; whether there was one. */
  release(): boolean {
    if (!this.#ended)
      this.#timer ??= setInterval(() => {
        void this.#retry()
      }, RETRY_MS).unref()
    try {
      unlinkSync(this.#file)
    } catch {
      return false /* already deleted, or the disk is read-only */
    }
    this.#log.warn(
      'the disk is full: the reserve of 4 MiB is deleted. Free some space; until then writes are refused with 503',
      { file: this.#file },
    )
    return true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true
    this.#stopTimer()
    await this.#creating
  }
  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #retry(): Promise<void> {
    if (!(await this.create())) return
    this.#stopTimer()
    this.#log.info('the disk has space again: the reserve is restored')
  }

  async #createFile(): Promise<boolean> {
    if (this.held) return true
    const draft = `${this.#file}.new`
    try {
      const { bavail, bsize } = await statfs(dirname(this.#file))
      if (bavail * bsize < this.#minFreeBytes) return false
      const handle = await open(draft, 'w', 0o600)
      try {
        // Written, not truncated to length: a sparse file reserves no space.
        const piece = Buffer.alloc(PIECE_BYTES, 0x2e)
        for (let at = 0; at < BYTES; at += PIECE_BYTES) await handle.write(piece, 0, PIECE_BYTES, at)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(draft, this.#file)
      return true
    } catch {
      // No space or an unwritable disk: the writer that needs it reports that. The next attempt overwrites a draft
      // that stays.
      await rm(draft, { force: true }).catch(() => undefined)
      return false
    }
  }
}
