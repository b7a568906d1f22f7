import { Observable } from './observable.ts'
import { parseFrame } from './wire.ts'
import type { ServerFrame } from './wire.ts'

/** `http`: the socket cannot be opened, though the daemon answers; messages go over server-sent events meanwhile. */
export type Link =
  | { readonly state: 'closed' | 'connecting' | 'open' | 'http' }
  | { readonly state: 'lost'; readonly retryAtMs: number }

export interface ConnectionParts {
  open(): Promise<WebSocket>
  /** Whether the daemon answers at all; throws when this page must stop trying, such as for a missing key. */
  reachable(): Promise<boolean>
  onFrame(frame: ServerFrame): void
  /** After every opening but the first. */
  onReopened(): void
  onDropped(): void
}

const firstDelayMs = 500
const longestDelayMs = 15_000
const quietMs = 20_000
const deadMs = 45_000

/** Keeps one socket open: reconnects with back-off, notices a link that died silently, and stops when told. */
export class Connection {
  readonly link = new Observable<Link>({ state: 'closed' })
  readonly #parts: ConnectionParts
  #stop: AbortController | undefined
  #socket: WebSocket | undefined
  #wake: (() => void) | undefined
  #everOpen = false

  constructor(parts: ConnectionParts) {
    this.#parts = parts
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
      // Only what `reachable` refuses ends the loop; who refused has shown why.
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
  send(frame: { readonly type: 'message'; readonly content: string } | { readonly type: 'ping' }): boolean {
    if (this.#socket === undefined || this.#socket.readyState !== this.#socket.OPEN) return false
    this.#socket.send(JSON.stringify(frame))
    return true
  }

  async #keepOpen(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      // What says that the link is lost stays while the page tries: it would come and go under the reader's hand.
      if (this.link.value.state === 'closed') this.link.set({ state: 'connecting' })
      const opened = await this.#session(signal)
      if (signal.aborted) return
      failures = opened ? 0 : failures + 1
      const reachable = await this.#parts.reachable()
      if (signal.aborted) return
      const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** failures) * (0.75 + Math.random() / 2)
      // Two attempts refused by a daemon that answers: something between here and there lets no socket through.
      const http = !opened && reachable && failures >= 2
      this.link.set(http ? { state: 'http' } : { state: 'lost', retryAtMs: Date.now() + delayMs })
      await this.#pause(http ? longestDelayMs : delayMs, signal)
    }
  }

  /** One socket from opening to close; whether it was ever open. */
  async #session(signal: AbortSignal): Promise<boolean> {
    let socket: WebSocket
    try {
      socket = await this.#parts.open()
    } catch {
      return false
    } // No ticket: `reachable` finds out why.
    if (signal.aborted) {
      socket.close()
      return false
    }
    this.#socket = socket
    let heardMs = Date.now()
    let opened = false
    const watchdog = setInterval(() => {
      const silentMs = Date.now() - heardMs
      if (silentMs > deadMs) socket.close()
      else if (silentMs > quietMs) this.send({ type: 'ping' })
    }, quietMs / 2)
    await new Promise<void>((resolve) => {
      socket.addEventListener('open', () => {
        opened = true
        this.link.set({ state: 'open' })
        if (this.#everOpen) this.#parts.onReopened()
        this.#everOpen = true
      })
      socket.addEventListener('message', (event: MessageEvent<unknown>) => {
        heardMs = Date.now()
        const frame = typeof event.data === 'string' ? parseFrame(parseJson(event.data)) : undefined
        if (frame && !signal.aborted) this.#parts.onFrame(frame)
      })
      socket.addEventListener('close', () => resolve())
    })
    clearInterval(watchdog)
    if (this.#socket === socket) this.#socket = undefined
    if (opened && !signal.aborted) this.#parts.onDropped()
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
