import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { GuestData, GuestMessage, Outcome } from './guest.ts'

export interface GuestRun {
  /** A WebAssembly module that keeps the contract of `guest.ts`. */
  readonly module: Uint8Array
  readonly input: Uint8Array
  /** Instructions it may run (default 1,000,000). */
  readonly fuel?: bigint
  /** Milliseconds it may take, compiling included (default and most 30,000). */
  readonly deadlineMs?: number
  /** Bytes of memory, in whole pages of 64 KiB (default and most 16 MiB). */
  readonly memoryBytes?: number
  /** Bytes of its answer (default 1 MiB). */
  readonly outputBytes?: number
  /** Answers `host_call`; whoever gives it checks what the guest may do. Without it every call is answered with nothing. */
  readonly host?: (request: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>
  /** Ends it when it aborts. */
  readonly signal?: AbortSignal
}
export interface GuestEnd {
  readonly outcome: Outcome
  /** Of `done`; else empty. */
  readonly output: Uint8Array
  /** Why it is not `done`. */
  readonly message: string
  /** The same for the same module and input; `undefined` when it was ended from outside. */
  readonly fuelUsed: bigint | undefined
  readonly durationMs: number
  /** What it logged, at most 64 KiB. */
  readonly log: string
}

const FUEL = 1_000_000n
const DEADLINE_MS = 30_000
const PAGE = 65_536
const MEMORY_BYTES = 256 * PAGE
const OUTPUT_BYTES = 1_048_576
const MODULE_BYTES = 4_194_304
const CONCURRENT = 4

/** Runs guests, each in a thread of its own, four at a time. Fuel, a clock and a cap of memory end each of them by itself. */
export class GuestRunner {
  #running = 0
  readonly #waiting: (() => void)[] = []

  /** Never rejects for what the guest does; throws the signal's reason. */
  async run(request: GuestRun): Promise<GuestEnd> {
    request.signal?.throwIfAborted()
    await this.#enter()
    try {
      request.signal?.throwIfAborted()
      return await start(request)
    } finally {
      // The place goes to the next one in line.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }

  async #enter(): Promise<void> {
    // Whoever asks for guests bounds how many of them wait.
    if (this.#running >= CONCURRENT) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
  }
}

/** The code of the thread lies beside this file, or in the build. */
function workerFile(): URL {
  const found = ['./worker.ts', './wasm-worker.js', '../wasm-worker.js']
    .map((name) => new URL(name, import.meta.url))
    .find((url) => existsSync(url))
  if (!found) throw new Error('the code for guests is missing: this installation is not complete')
  return found
}

function start({ module, input, host, signal, ...limits }: GuestRun): Promise<GuestEnd> {
  const startedAt = performance.now()
  const ready = new SharedArrayBuffer(4)
  const data: GuestData = {
    module,
    input,
    ready,
    moduleBytes: MODULE_BYTES,
    fuel: limits.fuel ?? FUEL,
    memoryPages: Math.floor(Math.min(limits.memoryBytes ?? MEMORY_BYTES, MEMORY_BYTES) / PAGE),
    outputBytes: limits.outputBytes ?? OUTPUT_BYTES,
  }
  const deadlineMs = Math.min(limits.deadlineMs ?? DEADLINE_MS, DEADLINE_MS)
  return new Promise((resolve, reject) => {
    const worker = new Worker(workerFile(), {
      workerData: data,
      env: {},
      argv: [],
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      trackUnmanagedFds: true,
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4, stackSizeMb: 2 },
    })
    const stopping = new AbortController()
    let ended = false
    const settle = (then: () => void): void => {
      if (ended) return
      ended = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      stopping.abort()
      // The place is free when the thread is gone, and not before.
      void worker.terminate().then(then, then)
    }
    const finish = (outcome: Outcome, message: string, more: Partial<GuestEnd> = {}): void =>
      settle(() =>
        resolve({
          outcome,
          message,
          output: new Uint8Array(0),
          fuelUsed: undefined,
          log: '',
          ...more,
          durationMs: performance.now() - startedAt,
        }),
      )
    const abort = (): void => settle(() => reject(signal?.reason))
    const timer = setTimeout(() => finish('deadline', `it took longer than ${deadlineMs} ms`), deadlineMs)
    signal?.addEventListener('abort', abort, { once: true })
    worker.on('message', (message: GuestMessage) => {
      if (message.type === 'end')
        finish(message.outcome, message.message, {
          output: message.output,
          fuelUsed: message.fuelUsed,
          log: message.log,
        })
      else void answer(message.request)
    })
    worker.once('error', (error) =>
      finish(
        'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory_limit' : 'trap',
        error.message.slice(0, 500),
      ),
    )
    worker.once('exit', () => finish('trap', 'the thread ended without an answer'))

    async function answer(request: Uint8Array): Promise<void> {
      let reply: Uint8Array
      try {
        reply = host ? await host(request, stopping.signal) : new Uint8Array(0)
      } catch (error) {
        return finish('abi', `the host refused: ${error instanceof Error ? error.message : 'failed'}`)
      }
      if (ended) return
      worker.postMessage(reply, [])
      Atomics.store(new Int32Array(ready), 0, 1)
      Atomics.notify(new Int32Array(ready), 0)
    }
  })
}
