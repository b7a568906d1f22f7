import { namesSecret } from './secret-name.ts'

const hidden = '***'
/** Shorter values would mask ordinary words. */
const leastSecretChars = 6

/** Hides secrets in everything that is logged: values it was told, and texts that look like a key. */
export interface Mask {
  /** Hides this value from now on, wherever it appears. Values under six characters are not hidden. */
  register(value: string): void
  text(text: string): string
  /** A copy that JSON can hold: secrets hidden, errors as objects, cycles and depth cut. */
  value(value: unknown, withStack: boolean): unknown
}

/** What messages of ours say of a key after its name and a colon: "token: expected a text". None of it is a value. */
const saidOfKeys = 'cannot|expected|invalid|missing|must|needs|other|required|unknown|wrong'

// Each pattern is linear: no nested quantifiers, since the text may come from outside.
const rules: readonly [pattern: RegExp, replacement: string][] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{4,}/gi, `$1 ${hidden}`],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|gsk|hf|AIza|ya29|AKIA|npm|key)[-_][\w-]{8,}\b/g, hidden],
  [/\b(?:AIza|AKIA)[\w-]{12,}\b/g, hidden],
  [/\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]+/g, hidden],
  [/\b([a-z][a-z\d+.-]{1,20}:\/\/)[^\s/?#@]{1,256}@/gi, `$1${hidden}@`],
  [/([?&;](?:[\w-]{0,40}(?:key|token|secret|password|passwd|signature|sig|auth|code))=)[^&#\s"']+/gi, `$1${hidden}`],
  [
    new RegExp(
      '\\b((?:[\\w-]{0,40}[_-])?(?:api[_-]?key|token|secret|password|passwd|passphrase|authorization))' +
        `(["']?\\s{0,3}[=:]\\s{0,3}["']?)(?!Bearer|Basic|\\*\\*\\*|(?<=: )(?:${saidOfKeys}) [a-z])[^\\s"',;&}\\]]{4,}`,
      'gi',
    ),
    `$1$2${hidden}`,
  ],
]

export function createMask(): Mask {
  const known = new Set<string>()
  const text = (value: string): string => {
    let out = value
    for (const secret of known) if (out.includes(secret)) out = out.replaceAll(secret, hidden)
    for (const [pattern, replacement] of rules) out = out.replace(pattern, replacement)
    return out
  }
  const copy = (value: unknown, withStack: boolean, depth: number, above: readonly object[]): unknown => {
    if (typeof value === 'string') return text(value)
    if (typeof value === 'bigint') return value.toString()
    if (typeof value === 'function' || typeof value === 'symbol') return `[${typeof value}]`
    if (typeof value !== 'object' || value === null) return value
    if (above.includes(value)) return '[circular]'
    if (depth > 5) return '[deep]'
    const inside = [...above, value]
    if (value instanceof Error) return copy(errorFields(value, withStack), withStack, depth, inside)
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
    if (value instanceof URL) return text(value.href)
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
    if (Array.isArray(value) || value instanceof Set) {
      const items = [...value]
      return [
        ...items.slice(0, 50).map((item) => copy(item, withStack, depth + 1, inside)),
        ...(items.length > 50 ? [`[${items.length - 50} more]`] : []),
      ]
    }
    const entries =
      value instanceof Map ? [...value].map(([key, item]) => [String(key), item] as const) : Object.entries(value)
    return Object.fromEntries(
      entries
        .slice(0, 100)
        .map(([key, item]) => [
          text(key),
          namesSecret(key) && isShown(item) ? hidden : copy(item, withStack, depth + 1, inside),
        ]),
    )
  }
  return {
    register(value) {
      if (value.trim().length >= leastSecretChars) known.add(value.trim())
    },
    text,
    value: (value, withStack) => copy(value, withStack, 0, []),
  }
}
/** Whether there is something to hide: "no key" is no secret. */
function isShown(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && typeof value !== 'boolean'
}
function errorFields(error: Error, withStack: boolean): Record<string, unknown> {
  return {
    name: error.name,
    message: error.message,
    ...Object.fromEntries(
      Object.entries(error).filter(([key]) => !['name', 'message', 'stack', 'cause', 'errors'].includes(key)),
    ),
    ...(error instanceof AggregateError ? { errors: error.errors } : {}),
    ...(error.cause === undefined ? {} : { cause: error.cause }),
    ...(withStack && error.stack ? { stack: error.stack } : {}),
  }
}
