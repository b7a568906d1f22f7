import { enforced, forkProcess } from 'svc/internal'
import type { OwnProcess } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { GuestRequest, GuestResult } from './contract.ts'

export type ToHost =
  | {
      readonly type: 'run'
      readonly id: number
      readonly request: Omit<GuestRequest, 'host' | 'signal'>
      readonly answers: boolean
    }
  | { readonly type: 'abort'; readonly id: number }
  | { readonly type: 'answer'; readonly question: number; readonly answer: Uint8Array; readonly refused?: string }
export type FromHost =
  | { readonly type: 'end'; readonly id: number; readonly end: GuestResult }
  | { readonly type: 'gone'; readonly id: number; readonly message: string }
  | { readonly type: 'ask'; readonly id: number; readonly question: number; readonly request: Uint8Array }

/** The process ends after this long without a guest. */
const IDLE_MS = 1_000
/** Guests that run or wait: four at once, the rest in the queue. */
const MAX_GUESTS = 68

interface Running {
  readonly request: GuestRequest
  readonly startedAt: number
  readonly stopping: AbortController
  resolve(end: GuestResult): void
  reject(error: unknown): void
}

/** Runs guests in a process beside the daemon, which exists while there are guests. Dispose to end it. */
export class GuestProcess implements Disposable {
  readonly #idleMs: number
  #process: OwnProcess | undefined
  #idle: NodeJS.Timeout | undefined
  #next = 0
  readonly #running = new Map<number, Running>()

  constructor({ idleMs = IDLE_MS }: { readonly idleMs?: number } = {}) {
    this.#idleMs = idleMs
  }

  /** Never rejects for what the guest does; throws `rate_limit` when too many wait, and the signal's reason. */
  async run(request: GuestRequest): Promise<GuestResult> {
    const { host, signal, ...plain } = request
    signal?.throwIfAborted()
    if (this.#running.size >= MAX_GUESTS)
      throw new Refusal('rate_limit', `${MAX_GUESTS} guests run or wait already`, { retryAfterSecs: 5 })
    clearTimeout(this.#idle)
    const own = (this.#process ??= this.#start())
    const id = ++this.#next
    const abort = (): void => {
      own.send({ type: 'abort', id } satisfies ToHost)
      this.#settle(id)?.reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
    try {
      const end = await new Promise<GuestResult>((resolve, reject) => {
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
    this.#process?.kill()
  }

  #start(): OwnProcess {
    const own = forkProcess('wasm', 'guest-host', {
      onMessage: (message) => this.#receive(own, message as FromHost),
      onExit: () => this.#lost(own),
    })
    return own
  }

  #receive(own: OwnProcess, message: FromHost): void {
    if (message.type === 'ask') void this.#answer(own, message)
    else if (message.type === 'end') this.#settle(message.id)?.resolve(message.end)
    else this.#settle(message.id)?.reject(new Error(message.message))
  }

  async #answer(own: OwnProcess, { id, question, request }: Extract<FromHost, { type: 'ask' }>): Promise<void> {
    const running = this.#running.get(id)
    try {
      const answer = await running?.request.host?.(request, running.stopping.signal)
      own.send({ type: 'answer', question, answer: answer ?? new Uint8Array(0) } satisfies ToHost)
    } catch (error) {
      // The message of any other error may hold more than a guest should learn.
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
    const own = this.#process
    this.#process = undefined
    own?.kill()
  }

  /** The process died while guests ran, for instance of a fault of the engine. */
  #lost(own: OwnProcess): void {
    // This process was ended because it was idle: present guests run in another.
    if (this.#process !== own) return
    this.#process = undefined
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
