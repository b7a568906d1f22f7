import { randomUUID } from 'node:crypto'
import type { ConsolaInstance } from 'consola'
import { actorOf } from '../auth/principal.ts'
import type { Principal } from '../auth/principal.ts'
import { runAs } from '../scope/actor.ts'
import { Refusal } from '../errors/error.ts'
import { outcomeOf } from '../errors/render.ts'
import { away } from './close-codes.ts'
import type { SocketEntry } from './router.ts'
import type { Socket } from './route.ts'

/** The part of the WebSocket library's peer that is used. */
export interface Wire {
  send(text: string): void
  close(code: number, reason: string): void
  terminate(): void
  readonly bufferedBytes: number
}
export interface SocketDeps {
  readonly entry: SocketEntry
  readonly state: unknown
  readonly clientAddress: string
  readonly principal: Principal
  readonly log: ConsolaInstance
  readonly limits: () => { readonly socketBufferBytes: number; readonly socketFrameBytes: number }
  /** Takes the limiter tokens of one frame; throws when there are none. */
  charge(text: string): void
  /** Whether the key it was opened with still holds. */
  allowed(): boolean
  onDefect(error: unknown, where: string): void
}

/** Frames that wait for the one before them. More, and the client is sending faster than anyone could mean. */
const maxQueuedFrames = 64
const unsupported = 1003
const policy = 1008
const failed = 1011
const overloaded = 1013

/** One open WebSocket of a plugin: frames in order, one at a time; everything that leaves is bounded. */
export class LiveSocket implements Socket {
  readonly id = randomUUID()
  readonly clientAddress: string
  readonly principal: Principal
  #deps: SocketDeps
  #wire: Wire
  #controller = new AbortController()
  #queue: string[] = []
  #busy = false
  #opened = false
  #waiting: (() => void)[] = []
  #release: (() => void | Promise<void>) | undefined
  #heardAt = performance.now()

  constructor(wire: Wire, deps: SocketDeps) {
    this.#wire = wire
    this.#deps = deps
    this.clientAddress = deps.clientAddress
    this.principal = deps.principal
    const { scope, route } = deps.entry
    this.#release = scope.own('socket', `${route.path} ${this.id}`, () => {
      this.close(away, 'service restart')
    })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }
  get bufferedBytes(): number {
    return this.#wire.bufferedBytes
  }
  /** Milliseconds since the client sent something. */
  get silentMs(): number {
    return performance.now() - this.#heardAt
  }
  get closed(): boolean {
    return this.#controller.signal.aborted
  }

  /** Runs the route's `open`; frames that arrive meanwhile wait. */
  async open(): Promise<void> {
    const { entry, state } = this.#deps
    await this.#guard('open', () => entry.route.open(this, state))
    this.#opened = true
    await this.#work()
  }

  send(text: string): void {
    if (this.closed) return
    if (!this.#deps.allowed()) {
      this.revoke()
      return
    }
    this.#wire.send(text)
    if (this.#wire.bufferedBytes > this.#deps.limits().socketBufferBytes) this.#end(overloaded, 'too slow', true)
  }

  drained(): Promise<void> {
    if (this.closed || this.#wire.bufferedBytes <= this.#mark()) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  close(code: number, reason: string): void {
    this.#end(code, reason, false)
  }

  /** Ends it when the key it was opened with no longer holds. */
  check(): void {
    if (!this.#deps.allowed()) this.revoke()
  }
  revoke(): void {
    this.#end(policy, 'unauthorized', false)
  }

  /** A frame came in. */
  receive(text: string): void {
    if (this.closed) return
    if (!this.#deps.allowed()) {
      this.revoke()
      return
    }
    this.#heardAt = performance.now()
    try {
      this.#deps.charge(text)
      const { socketFrameBytes: maxBytes } = this.#deps.limits()
      if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes)
        throw new Refusal(
          'payload_too_large',
          `Message too large (max ${maxBytes >= 1024 ? `${Math.floor(maxBytes / 1024)}KB` : `${maxBytes} bytes`})`,
        )
    } catch (error) {
      void this.#refuse(error)
      return
    }
    if (this.#queue.length >= maxQueuedFrames) {
      this.#end(policy, 'too many frames at once', false)
      return
    }
    this.#queue.push(text)
    void this.#work()
  }

  receiveBinary(): void {
    this.#end(unsupported, 'text frames only', false)
  }

  /** The client took something. */
  wake(): void {
    if (this.closed || this.#wire.bufferedBytes <= this.#mark()) for (const wake of this.#waiting.splice(0)) wake()
  }

  /** The connection is over, whoever ended it. Idempotent. */
  async gone(): Promise<void> {
    if (this.#release === undefined) return
    const release = this.#release
    this.#release = undefined
    this.#controller.abort(new DOMException('The socket is closed', 'AbortError'))
    this.#queue.length = 0
    this.wake()
    await release()
    const { entry, state } = this.#deps
    try {
      await entry.route.close?.(this, state)
    } catch (error) {
      this.#defect('close', error)
    }
  }

  #mark(): number {
    return this.#deps.limits().socketBufferBytes / 2
  }

  async #work(): Promise<void> {
    if (this.#busy || !this.#opened) return
    this.#busy = true
    const { entry, state } = this.#deps
    for (let text = this.#queue.shift(); text !== undefined && !this.closed; text = this.#queue.shift()) {
      const frame = text
      await this.#guard('frame', () => entry.route.frame(this, state, frame))
    }
    this.#busy = false
  }

  async #refuse(error: unknown): Promise<void> {
    const { entry, state } = this.#deps
    const { problem } = outcomeOf(error, this.id)
    if (!entry.route.refused) {
      this.#end(policy, problem.message, false)
      return
    }
    await this.#guard('refused', () => entry.route.refused?.(this, state, problem))
  }

  /** What a route's handler throws ends this socket and nothing else. */
  async #guard(step: string, run: () => unknown): Promise<void> {
    try {
      await runAs(actorOf(this), run)
    } catch (error) {
      if (this.closed) {
        this.#deps.log.debug('a socket handler ended after its socket', { step, error })
        return
      }
      if (error instanceof Refusal) {
        this.#end(policy, error.message, false)
        return
      }
      this.#defect(step, error)
      this.#end(failed, 'internal error', false)
    }
  }

  #defect(step: string, error: unknown): void {
    const where = `WebSocket ${this.#deps.entry.route.path} ${step}`
    this.#deps.log.error('a socket handler failed', { where, socket: this.id, error })
    this.#deps.onDefect(error, where)
  }

  #end(code: number, reason: string, now: boolean): void {
    if (this.closed) return
    // A close frame carries at most 123 bytes of reason.
    this.#wire.close(
      code,
      Buffer.from(reason)
        .subarray(0, 120)
        .toString()
        .replace(/\uFFFD$/, ''),
    )
    // A client that does not read would not read the close frame either.
    if (now) setTimeout(() => this.#wire.terminate(), 1_000).unref()
    void this.gone()
  }
}
