import { shortened, UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'
import type { ProgramRow } from './programs.ts'

const SIGNED_OUT =
  /not logged in|log(?:ged)? ?in|\/login|sign in|signed out|invalid api key|api[_ ]key|unauthori[sz]ed|authenticat|auth method|no auth|oauth|credentials/i
const CONTEXT =
  /prompt is too long|input is too long|context (?:window|length|limit)|context_length|exceeds? the maximum|ran out of room/i
const FILTERED = /content (?:filter|policy)|safety|usage polic|flagged|prohibited_content/i
const LIMITED = /rate.?limit|too many requests|resource_exhausted|quota|usage limit|hit your .*limit/i
/** What a plan allows for hours or days does not come back by waiting a few seconds. */
const USED_UP = /usage limit|hit your .*limit|quota|credit/i

/** The failure that a program's own words mean. `status` is that of the vendor's answer, where the program tells it. */
export function failureOf(
  name: string,
  program: ProgramRow,
  said: string,
  status: number | undefined,
): UpstreamFailure {
  const told = shortened(said.trim()) || 'without a reason'
  const code = status ?? Number(/\b(?:status|error|code|http)\b\D{0,12}([45]\d\d)\b/i.exec(said)?.[1] ?? 0)
  const reason = reasonOf(code, said)
  const advice =
    reason === 'auth'
      ? `. Sign in with \`${program.signIn}\` as the user whose home is in [providers.${name}] home`
      : ''
  const later =
    reason === 'rate_limit'
      ? !USED_UP.test(said)
      : reason === 'overloaded' || reason === 'server_error' || reason === 'timeout'
  return new UpstreamFailure(name, `${name}: ${program.command} failed: ${told.replace(/\.$/, '')}${advice}`, {
    reason,
    retry: later ? 'later' : 'never',
  })
}

function reasonOf(status: number, said: string): UpstreamReason {
  if (status === 401 || status === 403) return 'auth'
  if (CONTEXT.test(said)) return 'context_length'
  if (status === 429) return 'rate_limit'
  if (status === 503 || status === 529 || /overloaded|high demand/i.test(said)) return 'overloaded'
  if (status === 408) return 'timeout'
  if (status >= 500) return 'server_error'
  if (LIMITED.test(said)) return 'rate_limit'
  if (FILTERED.test(said)) return 'content_filter'
  if (status === 404 || /model.{0,80}(?:not (?:found|exist|supported)|may not exist)/i.test(said)) return 'not_found'
  if (status >= 400) return 'invalid_request'
  // It was found and cannot be run: its folder is one of the daemon's own, which no program sees, or what runs it is
  // not there.
  if (/failed to execute|no such file or directory|permission denied/i.test(said)) return 'not_found'
  if (SIGNED_OUT.test(said)) return 'auth'
  return /unknown (?:option|argument)|unexpected argument|invalid (?:option|argument)/i.test(said)
    ? 'invalid_request'
    : 'server_error'
}
