import { open, readdir, rm, stat } from 'node:fs/promises'
import type * as Playwright from 'playwright-core'
import type { Download as DownloadView } from '../wire.ts'
import { messageOf, pause, short } from './text.ts'

const MAX_DOWNLOADS = 20
const MAX_PARALLEL_DOWNLOADS = 3
const CHUNK_BYTES = 1_048_576

interface Download {
  readonly file: number
  readonly name: string
  readonly settled: Promise<void>
  path: string | undefined
  state: DownloadView['state']
  bytes: number
  why: string
  isReported: boolean
}

/** The files that pages offer, kept until the daemon has read them. */
export class Downloads {
  readonly #folder: string
  readonly #limit: number
  readonly #all: Download[] = []
  constructor(folder: string, limit: number) {
    this.#folder = folder
    this.#limit = limit
  }

  add(download: Playwright.Download): void {
    const running = this.#all.filter(({ state }) => state === 'running').length
    if (this.#all.length >= MAX_DOWNLOADS || running >= MAX_PARALLEL_DOWNLOADS)
      return void download.cancel().catch(() => undefined /* it has ended */)
    const done = Promise.withResolvers<void>()
    const entry: Download = {
      file: this.#all.length,
      name: short(download.suggestedFilename(), 200),
      settled: done.promise,
      path: undefined,
      state: 'running',
      bytes: 0,
      why: '',
      isReported: false,
    }
    this.#all.push(entry)
    void this.#follow(entry, download).finally(() => done.resolve())
  }

  async #follow(entry: Download, download: Playwright.Download): Promise<void> {
    const tooLarge = `it is larger than ${this.#limit} bytes (plugins.browser.max_download_bytes)`
    const watch = setInterval(() => {
      const check = async (): Promise<void> => {
        if ((await sizeOf(this.#folder)) <= this.#limit || entry.why !== '') return
        entry.why = tooLarge
        await download.cancel()
      }
      check().catch(() => undefined /* it has ended */)
    }, 50)
    try {
      const path = await download.path()
      const { size } = await stat(path)
      if (size > this.#limit) entry.why = tooLarge
      if (entry.why !== '') throw new Error(entry.why)
      Object.assign(entry, { path, bytes: size, state: 'done' })
    } catch (error) {
      entry.state = 'failed'
      entry.why ||= messageOf(error)
      await download.delete().catch(() => undefined /* it is in memory that goes with the sandbox */)
    } finally {
      clearInterval(watch)
    }
  }

  async settle(ms: number): Promise<void> {
    await Promise.race([Promise.all(this.#all.map(({ settled }) => settled)), pause(ms)])
  }
  /** Those that the daemon was not told of as ended yet. */
  report(): DownloadView[] {
    return this.#all
      .filter((one) => !one.isReported)
      .map((one) => {
        one.isReported = one.state !== 'running'
        const { file, name, state, bytes, why } = one
        return { file, name, state, bytes, why: short(why) }
      })
  }
  async read(file: number, offset: number): Promise<string> {
    const path = this.#all[file]?.path
    if (path === undefined) throw new Error('there is no such download')
    await using handle = await open(path, 'r')
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, offset)
    // The last part: the daemon has all of it.
    if (bytesRead < CHUNK_BYTES) await rm(path, { force: true })
    return buffer.subarray(0, bytesRead).toString('base64')
  }
}

async function sizeOf(folder: string): Promise<number> {
  const sizes = await Promise.all(
    (await readdir(folder)).map(async (name) => (await stat(`${folder}/${name}`).catch(() => undefined))?.size ?? 0),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
