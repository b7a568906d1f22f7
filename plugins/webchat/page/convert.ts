import type { Done, Job } from './markdown-worker.ts'

/** A text that takes longer is shown unformatted: no answer may block the page. */
const mostMs = 4000

interface Waiting extends Job {
  readonly done: (result: Done | undefined) => void
}

/** Converts Markdown into HTML in a worker. One text at a time; others wait. */
class Converter {
  #worker: Worker | undefined
  #queue: Waiting[] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `undefined` when it took too long, or no worker can be had. */
  convert(id: number, markdown: string): Promise<Done | undefined> {
    return new Promise((done) => {
      this.#queue.push({ id, markdown, done })
      if (this.#queue.length === 1) this.#next()
    })
  }

  #next(): void {
    const [job] = this.#queue
    if (!job) return
    try {
      this.#worker ??= this.#start()
    } catch {
      return this.#settle(undefined)
    }
    this.#timer = setTimeout(() => this.#fail(), mostMs)
    this.#worker.postMessage({ id: job.id, markdown: job.markdown } satisfies Job, {})
  }
  #start(): Worker {
    const worker = new Worker(new URL('./markdown-worker.ts', import.meta.url), { type: 'module' })
    worker.addEventListener('message', ({ data }: MessageEvent<Done>) => this.#settle(data))
    worker.addEventListener('error', () => this.#fail())
    return worker
  }
  #fail(): void {
    this.#worker?.terminate()
    this.#worker = undefined
    this.#settle(undefined)
  }
  #settle(result: Done | undefined): void {
    clearTimeout(this.#timer)
    this.#queue.shift()?.done(result)
    this.#next()
  }
}
export const converter = new Converter()
