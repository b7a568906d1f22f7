import { inspect } from 'node:util'

const shown = '[secret]'

/**
 * A secret in memory of its own, outside the pool that buffers share. It shows itself to nobody who does not ask for
 * its bytes, cannot be cloned into another thread, and disposing it overwrites it. What was made into a string cannot
 * be wiped by anyone: strings are copied and moved by the engine.
 */
export class SecretBytes implements Disposable {
  readonly #bytes: Buffer
  #wiped = false
  /** A function is what the structured clone algorithm refuses. */
  readonly uncloneable = (): string => shown

  /** Takes a copy; whoever has the original wipes it. */
  constructor(value: Uint8Array | string) {
    const size = typeof value === 'string' ? Buffer.byteLength(value) : value.byteLength
    this.#bytes = Buffer.allocUnsafeSlow(size)
    if (typeof value === 'string') this.#bytes.write(value, 'utf8')
    else this.#bytes.set(value)
  }

  get length(): number {
    return this.#bytes.byteLength
  }

  /** The bytes while `work` runs. They must not be kept. Throws after disposal. */
  use<T>(work: (bytes: Buffer) => T): T {
    if (this.#wiped) throw new Error('the secret was wiped')
    return work(this.#bytes)
  }
  /** A string, which nobody can wipe: only for interfaces that take nothing else. */
  toText(): string {
    return this.use((bytes) => bytes.toString('utf8'))
  }

  [Symbol.dispose](): void {
    this.#wiped = true
    this.#bytes.fill(0)
  }

  toString(): string {
    return shown
  }
  toJSON(): string {
    return shown
  }
  [Symbol.toPrimitive](): string {
    return shown
  }
  [inspect.custom](): string {
    return shown
  }
}
