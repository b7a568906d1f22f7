import { matchesWildcard } from '../schema/wildcard.ts'

/**
 * Whether host patterns allow an address. A pattern is a host, or has `*` for any characters: `*`, `*.example.com`,
 * `api.*`. One with a port, such as `example.com:8080`, is for that port only.
 */
export function allowsHost(patterns: readonly string[], url: URL): boolean {
  const host = url.hostname.toLowerCase().replace(/\.$/, '')
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  return patterns.some((pattern) => {
    const normalized = pattern.trim().toLowerCase()
    // An IPv6 address has colons of its own and stands in brackets.
    return matchesWildcard(
      normalized,
      /:[\d*]+$/.test(normalized) && !normalized.endsWith(']') ? `${host}:${port}` : host,
    )
  })
}

/** A host, with `*` for any characters, and perhaps a port. An IPv6 address stands in brackets. */
const HOST = /^(?:\[[0-9a-f:*]+\]|[^\s/:?#@[\]\\]+)(?::[\d*]+)?$/i
/** Why a text is no host pattern, and what to write; `undefined` when it is one. */
export function hostPatternProblem(pattern: string): string | undefined {
  if (HOST.test(pattern.trim())) return undefined
  const rest = pattern
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/^[^/@]*@/, '')
  const host = /^[^/?#]*/.exec(rest)?.[0] ?? ''
  return `"${pattern}" is no host: write ${HOST.test(host) ? `"${host}"` : 'one such as "api.example.com" or "*.example.com"'}`
}
