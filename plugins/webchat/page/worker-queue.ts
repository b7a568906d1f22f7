interface Waiting<Job, Done> {
  readonly job: Job
  readonly done: (result: Done | undefined) => void
}

/** Gives jobs to a worker, one at a time. A job that takes too long ends the worker, and the next one gets a new one. */
export class WorkerQueue<Job, Done> {
  readonly #open: () => Worker
  readonly #maxMs: number
  #worker: Worker | undefined
  #queue: Waiting<Job, Done>[] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(open: () => Worker, maxMs: number) {
    this.#open = open
    this.#maxMs = maxMs
  }

  /** `undefined` when it took too long, or no worker can be had. */
  run(job: Job): Promise<Done | undefined> {
    return new Promise((done) => {
      this.#queue.push({ job, done })
      if (this.#queue.length === 1) this.#next()
    })
  }

  #next(): void {
    const [waiting] = this.#queue
    if (!waiting) return
    try {
      this.#worker ??= this.#start()
    } catch {
      return this.#settle(undefined)
    }
    this.#timer = setTimeout(() => this.#fail(), this.#maxMs)
    this.#worker.postMessage(waiting.job, {})
  }
  #start(): Worker {
    const worker = this.#open()
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
