import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** What the statuses do not tell: a wrong token is 403, and a reaction that is not supported is 401. */
const REASONS: ReadonlyMap<number, UpstreamReason> = new Map([
  [120, 'auth'],
  [121, 'invalid_request'],
  [122, 'invalid_request'],
  [200, 'auth'],
])

/** Finds the error in an answer. Source: https://developer.twist.com/v3/#errors */
export function findError({ ok, body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { error_code: code, error_string: message } = parsed.output
  return omitUndefined({
    message: message || undefined,
    reason: REASONS.get(code) ?? (ok ? 'invalid_request' : undefined),
  })
}
