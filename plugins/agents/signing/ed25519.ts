/** The field prime and the order of the group of Ed25519 (RFC 8032). */
const P = 2n ** 255n - 19n
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n

/** The y coordinates of the points of small order. A signature by such a key is valid for many messages. */
const SMALL_ORDER: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  P - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
])

const toNumber = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes.toReversed()).toString('hex')}`)
const yCoordinate = (point: Uint8Array): bigint => toNumber(point) & (2n ** 255n - 1n)

/**
 * Why these bytes are not a trustworthy key: wrong length, non-canonical encoding, or a point of small order.
 * `undefined` for a valid key.
 */
export function keyProblem(key: Uint8Array): string | undefined {
  if (key.byteLength !== 32) return `has ${key.byteLength} bytes instead of 32`
  const y = yCoordinate(key)
  if (y >= P) return 'is not written in its canonical form'
  return SMALL_ORDER.has(y) ? 'is a point of small order' : undefined
}

/** Why these bytes cannot be a signature: wrong length or a non-canonical encoding. `undefined` when they can. */
export function signatureProblem(signature: Uint8Array): string | undefined {
  if (signature.byteLength !== 64) return `has ${signature.byteLength} bytes instead of 64`
  if (yCoordinate(signature.subarray(0, 32)) >= P) return 'is not written in its canonical form'
  return toNumber(signature.subarray(32)) < ORDER ? undefined : 'is not written in its canonical form'
}
