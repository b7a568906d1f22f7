import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Refusal } from '../errors/error.ts'
import { forkOwn } from '../process/fork.ts'
import type { Own } from '../process/fork.ts'
import { enforced } from '../scope/enforcement.ts'
import type { GuestEnd, GuestRun } from './runner.ts'

export type ToHost =
  | {
      readonly type: 'run'
      readonly id: number
      readonly request: Omit<GuestRun, 'host' | 'signal'>
      readonly answers: boolean
    }
  | { readonly type: 'abort'; readonly id: number }
  | { readonly type: 'answer'; readonly question: number; readonly answer: Uint8Array; readonly refused?: string }
export type FromHost =
  | { readonly type: 'end'; readonly id: number; readonly end: GuestEnd }
  | { readonly type: 'gone'; readonly id: number; readonly message: string }
  | { readonly type: 'ask'; readonly id: number; readonly question: number; readonly request: Uint8Array }

/** Without a guest for so long the process ends. */
const IDLE_MS = 1_000
/** Guests that run or wait there: four at once, the rest in line. */
const MOST = 68

interface Running {
  readonly request: GuestRun
  readonly startedAt: number
  readonly stopping: AbortController
  resolve(end: GuestEnd): void
  reject(error: unknown): void
}

/** Runs guests in a process beside the daemon, which is there while there are guests. Dispose to end it. */
export class GuestProcess implements Disposable {
  readonly #idleMs: number
  #own: Own | undefined
  #idle: NodeJS.Timeout | undefined
  #next = 0
  readonly #running = new Map<number, Running>()

  constructor({ idleMs = IDLE_MS }: { readonly idleMs?: number } = {}) {
    this.#idleMs = idleMs
  }

  /** Never rejects for what the guest does; throws `rate_limit` when too many wait, and the signal's reason. */
  async run(request: GuestRun): Promise<GuestEnd> {
    const { host, signal, ...plain } = request
    signal?.throwIfAborted()
    if (this.#running.size >= MOST)
      throw new Refusal('rate_limit', `${MOST} guests run or wait already`, { retryAfterSecs: 5 })
    clearTimeout(this.#idle)
    const own = (this.#own ??= this.#start())
    const id = ++this.#next
    const abort = (): void => {
      own.send({ type: 'abort', id } satisfies ToHost)
      this.#settle(id)?.reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
    try {
      const end = await new Promise<GuestEnd>((resolve, reject) => {
        this.#running.set(id, {
          request,
          startedAt: performance.now(),
          stopping: new AbortController(),
          resolve,
          reject,
        })
        own.send({ type: 'run', id, request: plain, answers: host !== undefined } satisfies ToHost)
      })
      if (end.outcome === 'fuel_exhausted' || end.outcome === 'deadline' || end.outcome === 'memory_limit')
        enforced('wasm_dual_metering')
      return end
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#idle)
    this.#own?.kill()
  }

  #start(): Own {
    const file = ['./guest-host.ts', './guest-host.js', '../guest-host.js']
      .map((name) => new URL(name, import.meta.url))
      .find((url) => existsSync(url))
    if (!file) throw new Error('the code for guests is missing: this installation is not complete')
    const own = forkOwn(
      fileURLToPath(file),
      (message) => this.#hear(own, message as FromHost),
      () => this.#lost(own),
    )
    return own
  }

  #hear(own: Own, message: FromHost): void {
    if (message.type === 'ask') void this.#answer(own, message)
    else if (message.type === 'end') this.#settle(message.id)?.resolve(message.end)
    else this.#settle(message.id)?.reject(new Error(message.message))
  }

  async #answer(own: Own, { id, question, request }: Extract<FromHost, { type: 'ask' }>): Promise<void> {
    const running = this.#running.get(id)
    try {
      const answer = await running?.request.host?.(request, running.stopping.signal)
      own.send({ type: 'answer', question, answer: answer ?? new Uint8Array(0) } satisfies ToHost)
    } catch (error) {
      // What is no refusal may say more than a guest should hear.
      own.send({
        type: 'answer',
        question,
        answer: new Uint8Array(0),
        refused: error instanceof Refusal ? error.message : 'failed',
      } satisfies ToHost)
    }
  }

  /** The guest has ended. */
  #settle(id: number): Running | undefined {
    const running = this.#running.get(id)
    this.#running.delete(id)
    running?.stopping.abort()
    if (this.#running.size === 0) {
      clearTimeout(this.#idle)
      this.#idle = setTimeout(() => this.#end(), this.#idleMs)
      this.#idle.unref()
    }
    return running
  }

  #end(): void {
    const own = this.#own
    this.#own = undefined
    own?.kill()
  }

  /** The process died under its guests, such as of a fault of the engine. */
  #lost(own: Own): void {
    // One that was ended for having no guests: those that run now are in another.
    if (this.#own !== own) return
    this.#own = undefined
    for (const [id, { startedAt }] of this.#running) {
      this.#settle(id)?.resolve({
        outcome: 'trap',
        message: 'the process of the guests died',
        output: new Uint8Array(0),
        fuelUsed: undefined,
        log: '',
        durationMs: performance.now() - startedAt,
      })
    }
  }
}
