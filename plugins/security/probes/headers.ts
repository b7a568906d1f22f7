import type { RawAnswer } from 'svc/internal'
import type { Finding } from '../contract.ts'
import type { ProbeTools } from '../probes.ts'

/**
 * What every answer must carry (Interface 8, security facts 1.4); written out here, so that a change of the daemon's
 * own list is noticed.
 */
const exact: Readonly<Record<string, string>> = {
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'strict-transport-security': 'max-age=63072000; includeSubDomains',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'x-dns-prefetch-control': 'off',
}
const directives = [
  "script-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
]
const banned = ['server', 'x-powered-by']
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/**
 * Real requests to the daemon's own port: an answer, a missing path, a body that is no JSON, and bytes that are no
 * HTTP.
 */
export async function probe({ ownPort }: ProbeTools): Promise<Finding> {
  const host = ownPort.host()
  if (host === undefined) return { cases: [], evidence: 'no port is open', skipped: true }
  const ask = (line: string, more: readonly string[] = [], body = ''): string =>
    `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more.map((each) => `${each}\r\n`).join('')}\r\n${body}`
  const json = ['Content-Type: application/json', 'Content-Length: 1']
  const requests: readonly (readonly [name: string, bytes: string, statuses: readonly number[]])[] = [
    ['an answer', ask('GET /api/health', ['X-Request-Id: <script>']), [200]],
    ['a path that does not exist', ask('GET /no/such/path'), [404]],
    ['a body that is no JSON', ask('POST /api/agents', json, '{'), [400, 401]],
    ['bytes that are no HTTP', 'GARBAGE\r\n\r\n', [400]],
  ]
  const cases = []
  const ids = new Set<string>()
  for (const [name, bytes, statuses] of requests) {
    const answer = await ownPort.exchange(bytes)
    if (!answer) return { cases: [], evidence: 'no port is open', skipped: true }
    const missing = lacks(answer)
    ids.add(answer.headers.get('x-request-id') ?? '')
    cases.push({
      name: `${name}: ${missing ?? `status ${answer.status}`}`,
      passed: missing === undefined && statuses.includes(answer.status),
    })
  }
  cases.push({ name: 'every answer has an id of its own', passed: ids.size === requests.length })
  return { cases, evidence: `${requests.length} answers of the open port` }
}

/** The first header that is not as it must be. */
function lacks({ headers }: RawAnswer): string | undefined {
  for (const [name, value] of Object.entries(exact))
    if (headers.get(name) !== value) return `${name} is ${headers.get(name) ?? 'missing'}`
  const policy = headers.get('content-security-policy') ?? ''
  if (!policy.startsWith("default-src 'self'")) return 'content-security-policy does not start with default-src'
  const absent = directives.find((each) => !policy.includes(each))
  if (absent !== undefined) return `content-security-policy lacks ${absent}`
  if (/unsafe-(?:inline|eval)/.test(policy)) return 'content-security-policy allows inline code'
  if (!uuid.test(headers.get('x-request-id') ?? '')) return 'x-request-id is no UUID'
  const leaking = banned.find((name) => headers.has(name))
  return leaking === undefined ? undefined : `${leaking} is sent`
}
