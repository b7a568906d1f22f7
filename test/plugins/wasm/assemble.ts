/** Puts binary modules together by hand. */
export const leb = (value: number): number[] => {
  const out: number[] = []
  let rest = value
  do {
    const low = rest % 128
    rest = Math.floor(rest / 128)
    out.push(rest > 0 ? low | 0x80 : low)
  } while (rest > 0)
  return out
}
export const signed = (value: bigint): number[] => {
  const out: number[] = []
  for (let rest = value; ;) {
    const low = Number(rest & 0x7fn)
    rest >>= 7n
    if ((rest === 0n && low < 0x40) || (rest === -1n && low >= 0x40)) return [...out, low]
    out.push(low | 0x80)
  }
}
export const text = (name: string): number[] => [...leb(Buffer.byteLength(name)), ...Buffer.from(name)]
export const list = (items: readonly (readonly number[])[]): number[] => [...leb(items.length), ...items.flat()]
export const section = (id: number, content: readonly number[]): number[] => [id, ...leb(content.length), ...content]
export const body = (code: readonly number[], locals: readonly (readonly number[])[] = []): number[] => {
  const content = [...list(locals), ...code, 0x0b]
  return [...leb(content.length), ...content]
}
const magic = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
export const i32 = 0x7f
export const i64 = 0x7e
export const constant = (value: number): number[] => [0x41, ...signed(BigInt(value))]

export interface Parts {
  /** Of `execute(pointer, length) -> i64`. */
  readonly execute?: readonly number[]
  readonly locals?: readonly (readonly number[])[]
  /**
   * Further functions without parameters and results: their bodies; the first has number 2 and the number of imports
   * more.
   */
  readonly more?: readonly (readonly number[])[]
  readonly memory?: readonly number[]
  readonly imports?: readonly (readonly number[])[]
  readonly exports?: readonly (readonly number[])[]
  /** Sections as they are, by their id. */
  readonly sections?: Readonly<Record<number, readonly number[]>>
}
/** Where `alloc` always points to. */
export const ROOM = 1024
/** An answer of so many bytes at a place. */
export const answer = (pointer: number, length: number): number[] => [
  0x42,
  ...signed((BigInt(pointer) << 32n) | BigInt(length)),
]
/** The answer is what was given. */
export const echo = [0x20, 0, 0xad, 0x42, 32, 0x86, 0x20, 1, 0xad, 0x84]

/** A guest that keeps the contract. Types: 0 (i32) -> i32, 1 (i32, i32) -> i64, 2 () -> (), 3 (i32, i32, i32) -> (). */
export function guest({
  execute = echo,
  locals = [],
  more = [],
  memory = [0, 1],
  imports = [],
  exports = [],
  sections = {},
}: Parts = {}): Uint8Array {
  const first = imports.length
  const all: Record<number, readonly number[]> = {
    1: list([
      [0x60, 1, i32, 1, i32],
      [0x60, 2, i32, i32, 1, i64],
      [0x60, 0, 0],
      [0x60, 3, i32, i32, i32, 0],
    ]),
    ...(imports.length > 0 ? { 2: list(imports) } : {}),
    3: list([[0], [1], ...more.map(() => [2])]),
    5: list([memory]),
    7: list([
      [...text('memory'), 2, 0],
      [...text('alloc'), 0, ...leb(first)],
      [...text('execute'), 0, ...leb(first + 1)],
      ...exports,
    ]),
    10: list([body(constant(ROOM)), body(execute, locals), ...more.map((code) => body(code))]),
    ...sections,
  }
  const order = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11, 13]
  return Uint8Array.from([...magic, ...order.flatMap((id) => (all[id] ? section(id, all[id]) : []))])
}
