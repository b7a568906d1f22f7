const RUNS = 64
const BYTES = 262_144
const MIN_CHARS = 24

/** Which characters base64 has, both alphabets. */
const base64: Uint8Array = Uint8Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9+/_-]/.test(String.fromCharCode(code)) ? 1 : 0,
)

/** Text hidden in base64, hexadecimal or percent encoding, one layer deep. */
export function decoded(text: string): string {
  const parts: string[] = []
  let bytes = 0
  let from = -1
  // One pass over the characters: a pattern would start again after each.
  for (let at = 0; at <= text.length && parts.length < RUNS && bytes < BYTES; at++) {
    if ((base64[text.charCodeAt(at)] ?? 0) === 1) {
      if (from < 0) from = at
      continue
    }
    if (from >= 0 && at - from >= MIN_CHARS) {
      const run = text.slice(from, Math.min(at, from + BYTES))
      const plain = Buffer.from(run, run.length % 2 === 0 && /^[0-9a-f]+$/i.test(run) ? 'hex' : 'base64')
      if (isText(plain)) {
        bytes += plain.byteLength
        parts.push(plain.toString('utf8'))
      }
    }
    from = -1
  }
  const first = text.indexOf('%')
  if (first >= 0 && /(?:%[0-9a-f]{2}[^%]{0,24}){4}/i.test(text.slice(first, first + BYTES)))
    parts.push(percent(text.slice(first > MIN_CHARS ? first - MIN_CHARS : 0, first + BYTES)))
  return parts.join('\n')
}

function isText(bytes: Buffer): boolean {
  let odd = 0
  const length = Math.min(bytes.byteLength, 4096)
  for (let at = 0; at < length; at++) {
    const byte = bytes[at] ?? 0
    if ((byte < 0x20 && byte !== 9 && byte !== 10 && byte !== 13) || byte > 0x7e) odd++
  }
  return length >= 12 && odd * 10 < length
}

function percent(text: string): string {
  return text
    .replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
    .replaceAll('+', ' ')
}
