const MAX = 127

/** A vector with a byte for each number. What counts is its direction, of which this keeps two decimals. */
export function toBytes(vector: Float32Array): Uint8Array {
  let largest = 0
  for (const value of vector) largest = Math.max(largest, Math.abs(value))
  const bytes = new Int8Array(vector.length)
  if (largest > 0)
    for (let at = 0; at < vector.length; at++) bytes[at] = Math.round(((vector[at] ?? 0) / largest) * MAX)
  return new Uint8Array(bytes.buffer)
}

/** From -1 to 1; 0 for vectors of different lengths or without a direction. */
export function cosine(one: Float32Array | Int8Array, other: Uint8Array): number {
  const numbers = new Int8Array(other.buffer, other.byteOffset, other.length)
  if (one.length !== numbers.length) return 0
  let [dot, square, otherSquare] = [0, 0, 0]
  for (let at = 0; at < one.length; at++) {
    const [a, b] = [one[at] ?? 0, numbers[at] ?? 0]
    dot += a * b
    square += a * a
    otherSquare += b * b
  }
  return square === 0 || otherSquare === 0 ? 0 : dot / Math.sqrt(square * otherSquare)
}

/** The same of two that are stored. */
export function cosineOfBytes(one: Uint8Array, other: Uint8Array): number {
  return cosine(new Int8Array(one.buffer, one.byteOffset, one.length), other)
}
