/** What makes a module one that is not run. */
export class ModuleProblem extends Error {
  override readonly name = 'ModuleProblem'
}

/** Reads the numbers of the binary format. Every read is checked against the end; a number may have one form only. */
export class Reader {
  readonly bytes: Uint8Array
  at: number
  readonly end: number
  constructor(bytes: Uint8Array, at = 0, end = bytes.byteLength) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  get done(): boolean {
    return this.at >= this.end
  }

  byte(): number {
    const value = this.bytes[this.at]
    if (value === undefined || this.at >= this.end) throw new ModuleProblem('the module ends too early')
    this.at++
    return value
  }
  take(length: number): Uint8Array {
    if (length > this.end - this.at) throw new ModuleProblem('the module ends too early')
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }
  /** The part of so many bytes from here on, which is then behind. */
  part(length: number): Reader {
    const from = this.at
    this.take(length)
    return new Reader(this.bytes, from, from + length)
  }

  u32(): number {
    let value = 0
    for (let scale = 1, read = 1; ; scale *= 128, read++) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) {
        if (value > 0xffff_ffff) throw new ModuleProblem('a number is too large')
        return value
      }
      if (read === 5) throw new ModuleProblem('a number is too long')
    }
  }
  /** A count of items, each of which has at least one byte. */
  count(max: number, what: string): number {
    const value = this.u32()
    if (value > max) throw new ModuleProblem(`${value} ${what} are more than ${max}`)
    return value
  }
  s32(): bigint {
    return this.#signed(32)
  }
  s33(): bigint {
    return this.#signed(33)
  }
  s64(): bigint {
    return this.#signed(64)
  }

  name(): Uint8Array {
    return this.take(this.u32())
  }

  #signed(bits: number): bigint {
    let value = 0n
    let shift = 0n
    const max = Math.ceil(bits / 7)
    for (let read = 1; ; read++) {
      if (read > max) throw new ModuleProblem('a number is too long')
      const byte = this.byte()
      value |= BigInt(byte & 0x7f) << shift
      shift += 7n
      if ((byte & 0x80) !== 0) continue
      if ((byte & 0x40) !== 0) value |= -1n << shift
      if (BigInt.asIntN(bits, value) !== value) throw new ModuleProblem('a number is too large')
      return value
    }
  }
}

/** Writes values in their shortest form, so that the engine reads exactly what the meter read. */
export class Writer {
  #bytes = new Uint8Array(1024)
  #length = 0

  get length(): number {
    return this.#length
  }
  /** From the beginning again. */
  clear(): void {
    this.#length = 0
  }
  done(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  byte(...values: readonly number[]): this {
    for (const value of values) {
      this.#room(1)
      this.#bytes[this.#length++] = value
    }
    return this
  }
  raw(bytes: Uint8Array): this {
    this.#room(bytes.byteLength)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.byteLength
    return this
  }
  u32(value: number): this {
    let rest = value
    while (rest >= 0x80) {
      this.byte((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    return this.byte(rest)
  }
  signed(value: bigint): this {
    let rest = value
    for (;;) {
      const low = Number(rest & 0x7fn)
      rest >>= 7n
      if ((rest === 0n && (low & 0x40) === 0) || (rest === -1n && (low & 0x40) !== 0)) return this.byte(low)
      this.byte(low | 0x80)
    }
  }
  sized(bytes: Uint8Array): this {
    return this.u32(bytes.byteLength).raw(bytes)
  }

  #room(more: number): void {
    if (this.#length + more <= this.#bytes.byteLength) return
    const larger = new Uint8Array(Math.max(this.#bytes.byteLength * 2, this.#length + more))
    larger.set(this.done())
    this.#bytes = larger
  }
}
