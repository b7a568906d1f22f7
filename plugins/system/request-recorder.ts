import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { readOwnJson, replaceConfined, toIso } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import { RECORDED_REQUESTS, RecordedRequests } from './contract.ts'
import type { RecordedRequest } from './contract.ts'

/** The latest read-only requests, each path once: a page that asks the same all the time does not push out the others. */
export class RequestRecorder {
  readonly #folder: string
  readonly #max: number
  readonly #stop: () => void
  #recent = new Map<string, RecordedRequest>()
  #changed = false

  constructor(daemon: Daemon, max: number, earlier: readonly RecordedRequest[]) {
    this.#folder = daemon.config().dataDir
    this.#max = max
    for (const request of earlier.slice(-max)) this.#recent.set(request.path, request)
    this.#stop = daemon.followReads(({ plugin, path, status, shape }) => {
      this.#recent.delete(path)
      this.#recent.set(path, { plugin, path, status, shape, at: toIso(Date.now()) })
      this.#changed = true
      const [oldest] = this.#recent.keys()
      if (oldest !== undefined && this.#recent.size > this.#max) this.#recent.delete(oldest)
    })
  }

  async write(): Promise<void> {
    if (!this.#changed) return
    this.#changed = false
    await replaceConfined(this.#folder, RECORDED_REQUESTS, `${JSON.stringify([...this.#recent.values()])}\n`)
  }

  async end(): Promise<void> {
    this.#stop()
    await this.write()
  }
}

/** Goes on with what was recorded before. What cannot be read is recorded anew. */
export async function startRecorder(
  daemon: Daemon,
  max: number,
  warn: (line: string) => void,
): Promise<RequestRecorder> {
  const file = join(daemon.config().dataDir, RECORDED_REQUESTS)
  let earlier: readonly RecordedRequest[] = []
  try {
    if (existsSync(file)) earlier = v.parse(RecordedRequests, readOwnJson(await readFile(file, 'utf8')))
  } catch (error) {
    warn(`${file} cannot be read, and requests are recorded anew: ${String(error)}`)
  }
  return new RequestRecorder(daemon, max, earlier)
}

/** Without recording nothing stays of it. */
export async function removeRecorded(daemon: Daemon): Promise<void> {
  await rm(join(daemon.config().dataDir, RECORDED_REQUESTS), { force: true })
}
