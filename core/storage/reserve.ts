import { existsSync, unlinkSync } from 'node:fs'
import { open, rename, rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

const BYTES = 4_194_304
/** So much must be free beside it before it is made, so that making it does not fill the disk. */
const ROOM_BYTES = 67_108_864
const LOOK_MS = 5_000

/**
 * A file that takes up room for the moment the disk is full: then it goes, and what has to be written to end in order can be. Made
 * again when there is room. Dispose it to stop looking; what is being made is waited for.
 */
export class Reserve implements AsyncDisposable {
  readonly #file: string
  readonly #log: { warn(message: string, facts?: object): void; info(message: string): void }
  readonly #room: number
  #timer: NodeJS.Timeout | undefined
  #making: Promise<boolean> | undefined
  #ended = false

  constructor(
    file: string,
    log: { warn(message: string, facts?: object): void; info(message: string): void },
    room = ROOM_BYTES,
  ) {
    this.#file = file
    this.#log = log
    this.#room = room
  }

  get held(): boolean {
    return existsSync(this.#file)
  }

  /** Makes it, when it is not there and there is room; whether it is there then. Never rejects. */
  make(): Promise<boolean> {
    if (this.#ended) return Promise.resolve(false)
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined
    })
    return this.#making
  }

  /** The disk is full: gives the room away at once. Whether there was any to give. */
  release(): boolean {
    if (!this.#ended)
      this.#timer ??= setInterval(() => {
        void this.#again()
      }, LOOK_MS).unref()
    try {
      unlinkSync(this.#file)
    } catch {
      return false /* it is gone already, or this disk takes no changes at all */
    }
    this.#log.warn(
      'the disk is full: the reserve of 4 MiB is given up. Free some space; until then writes are refused with 503',
      { file: this.#file },
    )
    return true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true
    this.#rest()
    await this.#making
  }
  #rest(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #again(): Promise<void> {
    if (!(await this.make())) return
    this.#rest()
    this.#log.info('there is room on the disk again: the reserve is kept as before')
  }

  async #make(): Promise<boolean> {
    if (this.held) return true
    const draft = `${this.#file}.new`
    try {
      const { bavail, bsize } = await statfs(dirname(this.#file))
      if (bavail * bsize < this.#room) return false
      const handle = await open(draft, 'w', 0o600)
      try {
        // Written, not only made long: a file with holes holds no room.
        await handle.writeFile(Buffer.alloc(BYTES, 0x2e))
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(draft, this.#file)
      return true
    } catch {
      // No room, or a disk that cannot be written: what needs it will say so. A draft that stays is written over the next time.
      await rm(draft, { force: true }).catch(() => undefined)
      return false
    }
  }
}
