import type { Api } from './api.ts'
import { ApiError } from './api.ts'
import type { Followed } from './events.ts'

const firstDelayMs = 500
const longestDelayMs = 15_000
/** The daemon writes a comment to a quiet stream more often than this. */
const deadMs = 60_000

/**
 * Keeps a stream of one session open while the page is in view. A page in the background holds none: a browser has few
 * connections for one server, and many tabs would use them up. The snapshot at the next opening brings what was missed.
 */
export class SessionFollower {
  readonly #api: Api
  readonly #onEvent: (event: Followed) => void
  /** The stream was lost, or cannot be had. */
  readonly #onLost: () => void
  #sessionId: string | undefined
  #stop: AbortController | undefined
  #open = false

  constructor(api: Api, onEvent: (event: Followed) => void, onLost: () => void) {
    this.#api = api
    this.#onEvent = onEvent
    this.#onLost = onLost
  }

  get open(): boolean {
    return this.#open
  }

  follow(sessionId: string): void {
    if (this.#sessionId === sessionId) return
    this.close()
    this.#sessionId = sessionId
    document.addEventListener('visibilitychange', this.#update)
    this.#update()
  }
  close(): void {
    document.removeEventListener('visibilitychange', this.#update)
    this.#sessionId = undefined
    this.#leave()
  }
  /** A new stream, whose snapshot has the present state. */
  restart(): void {
    if (this.#sessionId === undefined) return
    this.#leave()
    this.#update()
  }

  readonly #update = (): void => {
    if (document.hidden || this.#sessionId === undefined) return this.#leave()
    if (this.#stop) return
    const stop = new AbortController()
    this.#stop = stop
    this.#keepOpen(this.#sessionId, stop.signal).catch((error: unknown) => {
      // What the daemon refuses is shown where the session is read.
      if (!(error instanceof ApiError)) throw error
      this.#lost()
    })
  }
  #leave(): void {
    this.#stop?.abort()
    this.#stop = undefined
    this.#open = false
  }
  #lost(): void {
    this.#open = false
    this.#onLost()
  }

  async #keepOpen(sessionId: string, signal: AbortSignal): Promise<void> {
    let failures = 0
    for (;;) {
      const opened = await this.#once(sessionId, signal)
      if (signal.aborted) return
      failures = opened ? 0 : failures + 1
      this.#lost()
      const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** failures) * (0.75 + Math.random() / 2)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, delayMs)
        signal.addEventListener(
          'abort',
          () => {
            clearTimeout(timer)
            resolve()
          },
          { once: true },
        )
      })
      if (signal.aborted) return
    }
  }
  /** Whether it was ever open. Throws what ends all attempts. */
  async #once(sessionId: string, signal: AbortSignal): Promise<boolean> {
    const dead = new AbortController()
    let timer = setTimeout(() => dead.abort(), deadMs)
    let opened = false
    try {
      for await (const event of this.#api.follow(sessionId, AbortSignal.any([signal, dead.signal]))) {
        if (signal.aborted) return opened
        clearTimeout(timer)
        timer = setTimeout(() => dead.abort(), deadMs)
        opened = this.#open = true
        this.#onEvent(event)
      }
    } catch (error) {
      if (signal.aborted) return opened
      // A missing key or a removed session will not come back by retrying.
      if (error instanceof ApiError && (error.status === 401 || error.status === 403 || error.status === 404))
        throw error
    } finally {
      clearTimeout(timer)
    }
    return opened
  }
}
