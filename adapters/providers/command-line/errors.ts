import { shortened, UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'
import { failureClass } from 'svc/providers'
import type { ProgramRow } from './programs.ts'

const anyOf = (...patterns: readonly string[]): RegExp => new RegExp(patterns.join('|'), 'i')

const SIGNED_OUT = anyOf(
  'not logged in',
  'log(?:ged)? ?in',
  '/login',
  'sign in',
  'signed out',
  'invalid api key',
  'api[_ ]key',
  'unauthori[sz]ed',
  'authenticat',
  'auth method',
  'no auth',
  'oauth',
  'credentials',
)
const CONTEXT = anyOf(
  '(?:prompt|input) is too long',
  'context (?:window|length|limit)',
  'context_length',
  'exceeds? the maximum',
  'ran out of room',
)
const FILTERED = /content (?:filter|policy)|safety|usage polic|flagged|prohibited_content/i
const LIMITED = /rate.?limit|too many requests|resource_exhausted|quota|usage limit|hit your .*limit/i
/** A plan's allowance for hours or days. */
const QUOTA = /usage limit|hit your .*limit|quota|credit/i

/** The failure a program reports in plain text. `status` is that of the vendor's response, where it is known. */
export function failureOf(
  name: string,
  program: ProgramRow,
  message: string,
  status: number | undefined,
): UpstreamFailure {
  const code = status ?? Number(/\b(?:status|error|code|http)\b\D{0,12}([45]\d\d)\b/i.exec(message)?.[1] ?? 0)
  const reason = reasonOf(code, message)
  const text = (shortened(message.trim()) || 'without a reason').replace(/\.$/, '')
  const advice =
    reason === 'auth'
      ? `. Sign in with \`${program.signIn}\` as the user whose home is in [providers.${name}] home`
      : ''
  return new UpstreamFailure(
    name,
    `${name}: ${program.command} failed: ${text}${advice}`,
    failureClass(reason, QUOTA.test(message)),
  )
}

function reasonOf(status: number, message: string): UpstreamReason {
  if (status === 401 || status === 403) return 'auth'
  if (CONTEXT.test(message)) return 'context_length'
  if (status === 429) return 'rate_limit'
  if (status === 503 || status === 529 || /overloaded|high demand/i.test(message)) return 'overloaded'
  if (status === 408) return 'timeout'
  if (status >= 500) return 'server_error'
  if (LIMITED.test(message)) return 'rate_limit'
  if (FILTERED.test(message)) return 'content_filter'
  if (status === 404 || /model.{0,80}(?:not (?:found|exist|supported)|may not exist)/i.test(message)) return 'not_found'
  if (status >= 400) return 'invalid_request'
  // The program was found and cannot be run: its folder is one of the daemon's own, which no program may read, or its
  // interpreter is missing.
  if (/failed to execute|no such file or directory|permission denied/i.test(message)) return 'not_found'
  if (SIGNED_OUT.test(message)) return 'auth'
  return /unknown (?:option|argument)|unexpected argument|invalid (?:option|argument)/i.test(message)
    ? 'invalid_request'
    : 'server_error'
}
