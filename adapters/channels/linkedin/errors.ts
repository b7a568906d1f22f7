import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { AuthFailure, Failure } from './wire.ts'

/** What an operator has to do, by the status. */
const HINTS: Readonly<Record<number, string>> = {
  403: 'needs_partner_access: the app needs the Community Management API, and the member a role on the page',
  426: 'this version of the API is not served any more: change `api_version`',
}

/** Explains a failed request. */
export function findError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  const message = parsed.success ? parsed.output.message : undefined
  const hint = HINTS[status]
  return { message: hint === undefined ? message : [hint, message].filter((text) => text).join('; ') }
}

/** A refresh token that has ended comes with 400. */
export function findAuthError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(AuthFailure, body)
  const { error, error_description: text } = parsed.success ? parsed.output : {}
  return {
    message: text || error,
    reason: status === 400 || status === 401 || status === 403 ? 'auth' : undefined,
  }
}
