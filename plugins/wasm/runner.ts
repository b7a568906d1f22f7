import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { GuestOutcome, GuestRequest, GuestResult } from './contract.ts'
import type { GuestData, GuestMessage } from './guest.ts'

const FUEL = 1_000_000n
const DEADLINE_MS = 30_000
const PAGE = 65_536
const MEMORY_BYTES = 256 * PAGE
const OUTPUT_BYTES = 1_048_576
const MODULE_BYTES = 4_194_304
const MAX_CONCURRENT = 4

/** Runs guests, each in a thread of its own, four at a time. Fuel, a deadline and a memory limit each end a guest. */
export class GuestRunner {
  #running = 0
  readonly #waiting: (() => void)[] = []

  /** Never rejects for what the guest does; throws the signal's reason. */
  async run(request: GuestRequest): Promise<GuestResult> {
    request.signal?.throwIfAborted()
    await this.#enter()
    try {
      request.signal?.throwIfAborted()
      return await new GuestThread(request).result
    } finally {
      // Hand the place to the next in the queue.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }

  async #enter(): Promise<void> {
    // `GuestProcess` bounds how many wait.
    if (this.#running >= MAX_CONCURRENT) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
  }
}

/** The build puts the thread beside this code. */
function workerFile(): URL {
  const found = ['./processes/worker.ts', './wasm-worker.js', '../processes/wasm-worker.js']
    .map((name) => new URL(name, import.meta.url))
    .find((url) => existsSync(url))
  if (!found) throw new Error('this installation is incomplete: processes/wasm-worker.js is missing')
  return found
}

/** One guest in its thread, until it ends or exceeds a limit. */
class GuestThread {
  readonly result: Promise<GuestResult>
  readonly #request: GuestRequest
  readonly #startedAt = performance.now()
  /** 1 once the answer of the host has arrived. */
  readonly #ready = new Int32Array(new SharedArrayBuffer(4))
  readonly #worker: Worker
  readonly #timer: NodeJS.Timeout
  readonly #stopping = new AbortController()
  readonly #settled = Promise.withResolvers<GuestResult>()

  constructor(request: GuestRequest) {
    this.#request = request
    this.result = this.#settled.promise
    const deadlineMs = Math.min(request.deadlineMs ?? DEADLINE_MS, DEADLINE_MS)
    this.#worker = new Worker(workerFile(), {
      workerData: this.#guestData(request),
      env: {},
      argv: [],
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      trackUnmanagedFds: true,
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4, stackSizeMb: 2 },
    })
    this.#timer = setTimeout(() => this.#finish('deadline', `it took longer than ${deadlineMs} ms`), deadlineMs)
    request.signal?.addEventListener('abort', this.#abort, { once: true })
    this.#listen()
  }

  #guestData({ module, input, fuel, memoryBytes, outputBytes }: GuestRequest): GuestData {
    return {
      module,
      input,
      ready: this.#ready.buffer as SharedArrayBuffer,
      moduleBytes: MODULE_BYTES,
      fuel: fuel ?? FUEL,
      memoryPages: Math.floor(Math.min(memoryBytes ?? MEMORY_BYTES, MEMORY_BYTES) / PAGE),
      outputBytes: outputBytes ?? OUTPUT_BYTES,
    }
  }

  #listen(): void {
    this.#worker.on('message', (message: GuestMessage) => {
      if (message.type === 'call') return void this.#answer(message.request)
      const { outcome, output, fuelUsed, log } = message
      this.#finish(outcome, message.message, { output, fuelUsed, log })
    })
    this.#worker.once('error', (error) => {
      const isMemory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      this.#finish(isMemory ? 'memory_limit' : 'trap', error.message.slice(0, 500))
    })
    this.#worker.once('exit', () => this.#finish('trap', 'the thread ended without an answer'))
  }

  readonly #abort = (): void => this.#end(() => this.#settled.reject(this.#request.signal?.reason))

  #finish(outcome: GuestOutcome, message: string, more: Partial<GuestResult> = {}): void {
    this.#end(() =>
      this.#settled.resolve({
        outcome,
        message,
        output: new Uint8Array(0),
        fuelUsed: undefined,
        log: '',
        ...more,
        durationMs: performance.now() - this.#startedAt,
      }),
    )
  }

  #end(settle: () => void): void {
    if (this.#stopping.signal.aborted) return
    clearTimeout(this.#timer)
    this.#request.signal?.removeEventListener('abort', this.#abort)
    this.#stopping.abort()
    // The place is free once the thread has ended, and not before.
    void this.#worker.terminate().then(settle, settle)
  }

  async #answer(call: Uint8Array): Promise<void> {
    const { host } = this.#request
    let reply: Uint8Array
    try {
      reply = host ? await host(call, this.#stopping.signal) : new Uint8Array(0)
    } catch (error) {
      return this.#finish('abi', `the host refused: ${error instanceof Error ? error.message : 'failed'}`)
    }
    if (this.#stopping.signal.aborted) return
    this.#worker.postMessage(reply, [])
    Atomics.store(this.#ready, 0, 1)
    Atomics.notify(this.#ready, 0)
  }
}
