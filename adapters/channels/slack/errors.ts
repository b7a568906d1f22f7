import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** What the errors of the API mean that are not `invalid_request`. Source: https://docs.slack.dev/reference/methods */
const REASONS: Readonly<Record<string, UpstreamReason>> = {
  invalid_auth: 'auth',
  not_authed: 'auth',
  account_inactive: 'auth',
  token_revoked: 'auth',
  token_expired: 'auth',
  not_allowed_token_type: 'auth',
  org_login_required: 'auth',
  two_factor_setup_required: 'auth',
  ratelimited: 'rate_limit',
  rate_limited: 'rate_limit',
  message_limit_exceeded: 'rate_limit',
  fatal_error: 'server_error',
  internal_error: 'server_error',
  service_unavailable: 'overloaded',
  team_added_to_org: 'overloaded',
  request_timeout: 'timeout',
  channel_not_found: 'not_found',
  message_not_found: 'not_found',
  thread_not_found: 'not_found',
  user_not_found: 'not_found',
  file_not_found: 'not_found',
}

/** Finds the error in an answer, which has status 200 in most cases. */
export function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success || parsed.output.ok) return undefined
  const { error, needed, response_metadata: metadata } = parsed.output
  const code = error ?? 'unknown_error'
  const details = [needed != null ? `needs the scope ${needed}` : '', ...(metadata?.messages ?? [])]
  return omitUndefined({
    message: [code, ...details.filter((detail) => detail !== '')].join(', '),
    reason: REASONS[code] ?? 'invalid_request',
  })
}

/** The code of an error in a message made of `findError`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && error.message.includes(`: ${code}`)
}
