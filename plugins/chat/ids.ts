import { randomBytes } from 'node:crypto'

const POOL = 4096
let pool = ''
let at = 0
let last = 0
let serial = 0

/**
 * A UUID of version 7: it begins with the time, and later ones of this process sort after earlier ones. Rows written together then
 * lie on the same pages of an index, so that a commit writes a fraction of what random ids make it write.
 */
export function timeId(now = Date.now()): string {
  if (now > last) {
    last = now
    serial = 0
  } else if (++serial > 0xfff) {
    last++
    serial = 0
  }
  if (at + 16 > pool.length) {
    pool = randomBytes(POOL).toString('hex')
    at = 0
  }
  const random = pool.slice(at, (at += 16))
  const time = last.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${serial.toString(16).padStart(3, '0')}-${(0x8 | (Number.parseInt(random[0] ?? '0', 16) & 0x3)).toString(16)}${random.slice(1, 4)}-${random.slice(4)}`
}
