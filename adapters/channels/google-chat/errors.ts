import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure, RetryInfo, TokenFailure } from './wire.ts'

/** Explains a failed request to the API. */
export function findError({ ok, status: code, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  // The token has expired, or was taken back.
  const auth = code === 401 ? ({ reason: 'auth', retry: 'later' } as const) : {}
  if (!parsed.success) return code === 401 ? auth : undefined
  const { message, status, details } = parsed.output.error
  const text = [status, message].filter((part) => part != null && part !== '').join(': ')
  const [pause] = (details ?? []).flatMap((detail) => (v.is(RetryInfo, detail) ? [detail.retryDelay] : []))
  // Quotas of a minute: without a hint the host waits for longer each time.
  return { message: text, ...auth, retryAfterSecs: pause === undefined ? undefined : Number(pause.slice(0, -1)) }
}

/** Explains why no access token was issued: a key that was deleted, or a clock that is wrong. */
export function findTokenError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(TokenFailure, body)
  const message = parsed.success ? (parsed.output.error_description ?? parsed.output.error) : undefined
  return { message, reason: status === 400 || status === 401 ? 'auth' : undefined }
}
