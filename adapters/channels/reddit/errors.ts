import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { AuthFailure, Failure, Refused } from './wire.ts'

const SECONDS: Readonly<Record<string, number>> = { millisecond: 0.001, second: 1, minute: 60, hour: 3600 }
/** What an account that writes too often has to wait when Reddit does not say. */
const DEFAULT_PAUSE_SECS = 60

/** Explains a failed request, and finds the errors in answers of status 200. */
export function findError(answer: ApiAnswer): ApiError | undefined {
  const { ok, status, body } = answer
  const refused = v.safeParse(Refused, body)
  if (ok) return refused.success ? errorOf(refused.output.json) : undefined
  const failure = v.safeParse(Failure, body)
  const { message, reason } = failure.success ? failure.output : {}
  return omitUndefined({
    message: [message, reason].filter((text) => text).join(': ') || undefined,
    retryAfterSecs: status === 429 ? limitOf(answer)?.resetSecs : undefined,
  })
}

/** A wrong password comes with status 200, and a wrong secret with 401. */
export function findAuthError({ ok, status, body, header }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(AuthFailure, body)
  if (!parsed.success && ok) return undefined
  if (status === 429 || status >= 500) return findError({ ok, status, body, header })
  const { error, message } = parsed.success ? parsed.output : {}
  return { message: `Reddit refuses the credentials: ${message ?? error ?? status}`, reason: 'auth', retry: 'never' }
}

/** How many requests are left, and when there are more. */
export function limitOf({ header }: ApiAnswer): { readonly remaining: number; readonly resetSecs: number } | undefined {
  const remaining = Number(header('x-ratelimit-remaining') ?? NaN)
  const resetSecs = Number(header('x-ratelimit-reset') ?? NaN)
  return Number.isFinite(remaining) && Number.isFinite(resetSecs) ? { remaining, resetSecs } : undefined
}

function errorOf({ errors, ratelimit }: v.InferOutput<typeof Refused>['json']): ApiError {
  const [[code, text] = ['', '']] = errors
  const message = text ? `${code}: ${text}` : code
  if (code !== 'RATELIMIT') return { message, reason: 'invalid_request', retry: 'never' }
  return { message, reason: 'rate_limit', retry: 'later', retryAfterSecs: ratelimit ?? pauseIn(text ?? '') }
}

/** Such as `Take a break for 9 minutes before trying again.` */
function pauseIn(text: string): number {
  const [, count = '', unit = ''] = /(\d{1,5}) (millisecond|second|minute|hour)s?\b/i.exec(text) ?? []
  return count === '' ? DEFAULT_PAUSE_SECS : Number(count) * (SECONDS[unit.toLowerCase()] ?? 1)
}
