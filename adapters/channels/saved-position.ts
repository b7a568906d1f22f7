import { SerialQueue } from 'svc/sdk'
import type { ChannelLink } from './channel.ts'
import { pause } from './background.ts'

/**
 * A position in the feed of a platform that may be behind: what comes after it is delivered again and dropped as a
 * duplicate. So a busy feed does not cost a write for each message.
 */
export class SavedPosition {
  readonly #link: Pick<ChannelLink<unknown>, 'state' | 'sleep' | 'signal' | 'log'>
  readonly #key: string
  readonly #intervalMs: number
  readonly #writes = new SerialQueue()
  #value: string | undefined
  #isScheduled = false

  constructor(link: Pick<ChannelLink<unknown>, 'state' | 'sleep' | 'signal' | 'log'>, key: string, intervalMs = 5000) {
    this.#link = link
    this.#key = key
    this.#intervalMs = intervalMs
  }

  async read(): Promise<string | undefined> {
    const value = await this.#link.state.read(this.#key)
    return value === '' ? undefined : value
  }

  /** Written within the interval, and by `flush`. */
  set(value: string): void {
    this.#value = value
    if (this.#isScheduled) return
    this.#isScheduled = true
    // A position that could not be written is written with the next one; until then an older one holds.
    this.#writeLater().catch((error: unknown) =>
      this.#link.log.warn('the position in the feed could not be stored; it is stored with the next one', error),
    )
  }

  /** Durable when it settles. */
  async write(value: string): Promise<void> {
    this.#value = value
    await this.flush()
  }

  /** The feed is read from its end the next time. */
  async clear(): Promise<void> {
    await this.write('')
  }

  /** Writes what is not written. */
  async flush(): Promise<void> {
    await this.#writes.run(async () => {
      const value = this.#value
      if (value === undefined) return
      await this.#link.state.write(this.#key, value)
      if (this.#value === value) this.#value = undefined
    })
  }

  async #writeLater(): Promise<void> {
    const isOpen = await pause(this.#link, this.#intervalMs, this.#link.signal)
    this.#isScheduled = false
    // Who closes the connection flushes.
    if (isOpen) await this.flush()
  }
}
