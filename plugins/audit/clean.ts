const MAX_BYTES = 4_096
const CUT = ' […]'

/** Patterns of keys and tokens that vendors use, and values after a telltale name. All linear: no nested repetition. */
const SECRETS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g, '[secret]'],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi, '$1 [secret]'],
  [/\b(sk|pk|rk|whsec|gsk|xai|hf|npm|glpat|dop_v1|shpat)[-_][A-Za-z0-9_-]{12,}/g, '[secret]'],
  [/\b(ghp|gho|ghu|ghs|ghr|github_pat)_[A-Za-z0-9_]{16,}/g, '[secret]'],
  [/\bxox[abeoprs]-[A-Za-z0-9-]{8,}/g, '[secret]'],
  [/\b(AKIA|ASIA)[A-Z0-9]{16}\b/g, '[secret]'],
  [/\bAIza[A-Za-z0-9_-]{30,}/g, '[secret]'],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g, '[secret]'],
  [/\b[0-9]{8,10}:[A-Za-z0-9_-]{35}\b/g, '[secret]'],
  [
    /((?:api[_-]?key|access[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|authorization)["']?\s{0,3}[:=]\s{0,3}["']?)(?!\[secret\]|Bearer|Basic)[^\s"',;&}]{3,}/gi,
    '$1[secret]',
  ],
  [/(\/\/[^\s/:@]{1,64}:)[^\s/@]{1,256}@/g, '$1[secret]@'],
]
/** Hardly any entry has one, and searching for all at once costs a fraction of searching for each. */
const ANY_SECRET = new RegExp(SECRETS.map(([{ source }]) => source).join('|'), 'i')
const CONTROL = /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu

const escape = (text: string): string =>
  text
    .toWellFormed()
    .replace(CONTROL, (char) =>
      char === '\n'
        ? '\\n'
        : char === '\r'
          ? '\\r'
          : char === '\t'
            ? '\\t'
            : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )

/** One line that is safe to print: secrets masked, control and direction characters escaped, at most 4 KiB of UTF-8. */
export function clean(text: string, maxBytes = MAX_BYTES): string {
  // Cut roughly first, so that masking a megabyte costs no more than masking what is kept; a secret at the cut still
  // has its head.
  const head = text.length > maxBytes * 2 ? text.slice(0, maxBytes * 2) : text
  return cut(
    escape(
      ANY_SECRET.test(head)
        ? SECRETS.reduce((now, [pattern, replacement]) => now.replace(pattern, replacement), head)
        : head,
    ),
    maxBytes,
  )
}

function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return text
  let end = maxBytes - Buffer.byteLength(CUT)
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + CUT
}
