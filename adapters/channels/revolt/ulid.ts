const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const TIME_CHARS = 10
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/** Ids begin with their milliseconds since 1970. 0 for a text that is no such id. */
export function timeOf(id: string): number {
  if (!ULID.test(id)) return 0
  let ms = 0
  for (const digit of id.slice(0, TIME_CHARS)) ms = ms * DIGITS.length + DIGITS.indexOf(digit)
  return ms
}

/** The lowest id of a time. */
export function lowestId(ms: number): string {
  let id = ''
  let rest = Math.max(0, ms)
  for (let place = 0; place < TIME_CHARS; place++) {
    id = `${DIGITS[rest % DIGITS.length]}${id}`
    rest = Math.floor(rest / DIGITS.length)
  }
  return id.padEnd(26, '0')
}
