import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'

const ID_BYTES = 16
/** Asking the system for the bytes of one id takes longer than all else. */
const pool = new Uint8Array(256 * ID_BYTES)
let used = pool.length
let msecs = -Infinity
let seq = 0

/** A UUID (version 7). Ids of one process sort in the order they were made, so that rows lie in the order of time. */
export function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.subarray(used, (used += ID_BYTES))
  const now = Date.now()
  if (now > msecs) {
    msecs = now
    // Leaves room to count up within the millisecond.
    seq = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1
  } else seq++
  return v7({ random, msecs, seq })
}
