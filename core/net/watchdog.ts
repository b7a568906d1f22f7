import { AsyncLocalStorage } from 'node:async_hooks'

/** Something that must go on or end in time. */
export interface Watch {
  /** Gives it this long from now. */
  extend(ms: number): void
  /** It is over. */
  end(): void
}

/**
 * Tells what is too late. One timer for all that is watched, so that a request sets none of its own. Never holds the
 * process.
 */
export class Watchdog {
  readonly #watched = new Set<Watched>()
  #timer: NodeJS.Timeout | undefined
  #wakesAt = Infinity
  /** The timer belongs to nobody who happens to send the first request, such as a plugin in its setup. */
  readonly #inOwnContext = AsyncLocalStorage.snapshot()

  /** `late` is called once, when the time has passed and the watch was neither extended nor ended. */
  watch(ms: number, late: () => void): Watch {
    const watched = new Watched(this, late)
    watched.extend(ms)
    return watched
  }
  /** Forgets everything. */
  close(): void {
    clearTimeout(this.#timer)
    this.#watched.clear()
    this.#wakesAt = Infinity
  }

  add(watched: Watched): void {
    this.#watched.add(watched)
    // A later end than the one that is waited for is looked at then; so hardly any watch touches the timer.
    if (watched.dueAt < this.#wakesAt) this.#sleepUntil(watched.dueAt)
  }
  remove(watched: Watched): void {
    this.#watched.delete(watched)
  }

  #sleepUntil(at: number): void {
    clearTimeout(this.#timer)
    this.#wakesAt = at
    const ms = Math.max(1, Math.ceil(at - performance.now()))
    this.#timer = this.#inOwnContext(() => setTimeout(() => this.#check(), ms))
    this.#timer.unref()
  }
  #check(): void {
    this.#wakesAt = Infinity
    const now = performance.now()
    const late: Watched[] = []
    let next = Infinity
    for (const watched of this.#watched) {
      if (watched.dueAt <= now) late.push(watched)
      else if (watched.dueAt < next) next = watched.dueAt
    }
    if (next < Infinity) this.#sleepUntil(next)
    for (const watched of late) if (this.#watched.delete(watched)) watched.late()
  }
}

class Watched implements Watch {
  readonly #dog: Watchdog
  readonly late: () => void
  dueAt = Infinity
  constructor(dog: Watchdog, late: () => void) {
    this.#dog = dog
    this.late = late
  }
  extend(ms: number): void {
    this.dueAt = performance.now() + ms
    this.#dog.add(this)
  }
  end(): void {
    this.#dog.remove(this)
  }
}
