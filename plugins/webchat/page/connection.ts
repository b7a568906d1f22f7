import { Observable } from './observable.ts'
import { parseFrame } from './wire.ts'
import type { ClientFrame, ServerFrame } from './wire.ts'

/** `http`: the socket cannot be opened, though the daemon answers; messages use server-sent events until it can. */
export type Link =
  | { readonly state: 'closed' | 'connecting' | 'open' | 'http' }
  | { readonly state: 'lost'; readonly retryAtMs: number }

export interface ConnectionDeps {
  open(): Promise<WebSocket>
  /** Whether the daemon answers; throws when this page must stop trying, for example for a missing key. */
  reachable(): Promise<boolean>
  onFrame(frame: ServerFrame): void
  /** After every opening but the first. */
  onReopened(): void
  onDropped(): void
}

const INITIAL_DELAY_MS = 500
const MAX_DELAY_MS = 15_000
const PING_AFTER_MS = 20_000
const CLOSE_AFTER_MS = 45_000

/** Keeps one socket open: reconnects with back-off, detects a silently broken link, and stops on request. */
export class Connection {
  readonly link = new Observable<Link>({ state: 'closed' })
  readonly #deps: ConnectionDeps
  #stop: AbortController | undefined
  #socket: WebSocket | undefined
  #wake: (() => void) | undefined
  #everOpen = false

  constructor(deps: ConnectionDeps) {
    this.#deps = deps
  }

  start(): void {
    if (this.#stop) return
    const stop = new AbortController()
    this.#stop = stop
    window.addEventListener('online', this.#retryNow, { signal: stop.signal })
    document.addEventListener(
      'visibilitychange',
      () => {
        if (!document.hidden) this.retryNow()
      },
      { signal: stop.signal },
    )
    this.#keepOpen(stop.signal).catch((error: unknown) => {
      // Only a rejection of `reachable` ends the loop; the callback has shown the reason.
      console.warn(error)
      this.close()
    })
  }

  close(): void {
    this.#stop?.abort()
    this.#stop = undefined
    this.#socket?.close(1000)
    this.#socket = undefined
    this.#wake?.()
    this.link.set({ state: 'closed' })
  }

  /** Ends a pause between attempts. */
  retryNow(): void {
    this.#wake?.()
  }
  readonly #retryNow = (): void => this.retryNow()

  /** False when the socket is not open. */
  send(frame: ClientFrame): boolean {
    if (this.#socket === undefined || this.#socket.readyState !== this.#socket.OPEN) return false
    this.#socket.send(JSON.stringify(frame))
    return true
  }

  async #keepOpen(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      // The banner of a lost link stays during an attempt: it would flicker under the pointer.
      if (this.link.value.state === 'closed') this.link.set({ state: 'connecting' })
      const opened = await this.#session(signal)
      if (signal.aborted) return
      failures = opened ? 0 : failures + 1
      const reachable = await this.#deps.reachable()
      if (signal.aborted) return
      const delayMs = Math.min(MAX_DELAY_MS, INITIAL_DELAY_MS * 2 ** failures) * (0.75 + Math.random() / 2)
      // The daemon answers and two attempts failed: something on the way blocks WebSockets.
      const http = !opened && reachable && failures >= 2
      this.link.set(http ? { state: 'http' } : { state: 'lost', retryAtMs: Date.now() + delayMs })
      await this.#pause(http ? MAX_DELAY_MS : delayMs, signal)
    }
  }

  /** One socket from opening to close; whether it was ever open. */
  async #session(signal: AbortSignal): Promise<boolean> {
    let socket: WebSocket
    try {
      socket = await this.#deps.open()
    } catch {
      return false
    } // No ticket: `reachable` finds out why.
    if (signal.aborted) {
      socket.close()
      return false
    }
    this.#socket = socket
    let lastFrameMs = Date.now()
    let opened = false
    const watchdog = setInterval(() => {
      const silentMs = Date.now() - lastFrameMs
      if (silentMs > CLOSE_AFTER_MS) socket.close()
      else if (silentMs > PING_AFTER_MS) this.send({ type: 'ping' })
    }, PING_AFTER_MS / 2)
    await new Promise<void>((resolve) => {
      socket.addEventListener('open', () => {
        opened = true
        this.link.set({ state: 'open' })
        if (this.#everOpen) this.#deps.onReopened()
        this.#everOpen = true
      })
      socket.addEventListener('message', (event: MessageEvent<unknown>) => {
        lastFrameMs = Date.now()
        const frame = typeof event.data === 'string' ? parseFrame(parseJson(event.data)) : undefined
        if (frame && !signal.aborted) this.#deps.onFrame(frame)
      })
      socket.addEventListener('close', () => resolve())
    })
    clearInterval(watchdog)
    if (this.#socket === socket) this.#socket = undefined
    if (opened && !signal.aborted) this.#deps.onDropped()
    return opened
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#wake = undefined
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#wake = done
    })
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  } // Every frame is JSON (Interface 6.1); anything else is not for us.
}
