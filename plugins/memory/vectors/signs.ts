/** Memories of one row. */
export const CHUNK = 256
/** Signs of longer vectors are not kept: a thousand of them say well which vectors are near. */
const MAX_SIGNS = 1_024
const BITS = 32
/** Numbers of 32 bits in front of the signs of a memory: who may see it, and whom it is for. */
const HEAD = 2

/** Marks as numbers. Two may be the same: the rows decide. */
export interface Owner {
  /** Of who may see it; never 0, which is an empty place. */
  readonly own: number
  readonly user: number
}

/** Whether the numbers of a vector are above 0, a bit each. */
export function signsOf(vector: Float32Array | Int8Array): Uint32Array {
  const length = Math.min(vector.length, MAX_SIGNS)
  const bits = new Uint32Array(Math.ceil(length / BITS))
  for (let at = 0; at < length; at++)
    if ((vector[at] ?? 0) > 0) bits[at >>> 5] = (bits[at >>> 5] ?? 0) | (1 << (at & 31))
  return bits
}
/** The same of one that is stored. */
export function signsOfBytes(vector: Uint8Array): Uint32Array {
  return signsOf(new Int8Array(vector.buffer, vector.byteOffset, vector.length))
}
/** What a place of a row has. */
export function toPlace(signs: Uint32Array, { own, user }: Owner): Uint8Array {
  const place = new Uint32Array(HEAD + signs.length)
  place[0] = own
  place[1] = user
  place.set(signs, HEAD)
  return new Uint8Array(place.buffer)
}
/** A row as numbers; none for one that cannot be read. */
export const toNumbers = (places: Uint8Array): Uint32Array =>
  places.length % (CHUNK * Uint32Array.BYTES_PER_ELEMENT) === 0
    ? new Uint32Array(new Uint8Array(places).buffer)
    : new Uint32Array(0)
/** Which of its places are empty. */
export function emptyPlaces(chunk: Uint32Array): readonly number[] {
  const width = chunk.length / CHUNK
  return Array.from({ length: CHUNK }, (_, at) => at).filter((at) => chunk[at * width] === 0)
}

/** Which places of a row count. */
export interface Wanted {
  readonly signs: Uint32Array
  /** Absent: whoever may see it. */
  readonly owns: ReadonlySet<number> | undefined
  readonly user: number | undefined
}
/** The distance of a place that does not count. */
export const NONE = 65_535

/** Writes how many signs of each place of a row are others, from `at` on, and counts them in `histogram`. */
export function measure(
  chunk: Uint32Array,
  wanted: Wanted,
  distances: Uint16Array,
  at: number,
  histogram: Uint32Array,
) {
  const { signs, owns, user } = wanted
  const width = chunk.length / CHUNK
  if (width !== HEAD + signs.length) {
    distances.fill(NONE, at, at + CHUNK)
    return
  }
  const { length } = signs
  // Most places of a row have the same owner, of which a set is asked once.
  let [last, isLast] = [0, false]
  for (let place = 0, from = 0; place < CHUNK; place++, from += width) {
    const own = chunk[from] ?? 0
    if (own !== last) {
      last = own
      isLast = own !== 0 && (owns === undefined || owns.has(own))
    }
    if (!isLast || (user !== undefined && chunk[from + 1] !== user)) {
      distances[at + place] = NONE
      continue
    }
    let apart = 0
    for (let word = 0; word < length; word++) apart += countBits((chunk[from + HEAD + word] ?? 0) ^ (signs[word] ?? 0))
    distances[at + place] = apart
    histogram[apart] = (histogram[apart] ?? 0) + 1
  }
}
function countBits(value: number): number {
  let bits = value - ((value >>> 1) & 0x5555_5555)
  bits = (bits & 0x3333_3333) + ((bits >>> 2) & 0x3333_3333)
  return (((bits + (bits >>> 4)) & 0x0f0f_0f0f) * 0x0101_0101) >>> 24
}
