import type { Link } from './config.ts'

/** Servers accept a few lines at once and then one in two seconds. */
export const BURST = 5
export const INTERVAL_MS = 2000

/** Delays lines that the server would end the connection for. */
export class FloodControl {
  readonly #link: Pick<Link, 'now' | 'sleep'>
  /** When all that was sent would have been sent, one line in each interval. */
  #paidUntil = 0

  constructor(link: Pick<Link, 'now' | 'sleep'>) {
    this.#link = link
  }

  /** Whether a line that matters little can go without delaying those that follow. */
  tryTake(): boolean {
    const now = this.#link.now()
    const paidUntil = Math.max(this.#paidUntil, now) + INTERVAL_MS
    // Keeps room for a message.
    if (paidUntil - now > (BURST - 1) * INTERVAL_MS) return false
    this.#paidUntil = paidUntil
    return true
  }

  async take(): Promise<void> {
    const now = this.#link.now()
    this.#paidUntil = Math.max(this.#paidUntil, now) + INTERVAL_MS
    const ms = this.#paidUntil - BURST * INTERVAL_MS - now
    if (ms > 0) await this.#link.sleep(ms)
  }
}
