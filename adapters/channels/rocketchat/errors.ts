import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

const TOO_MANY = 'error-too-many-requests'
/** The only sign of a message that is gone. */
const GONE = /^No message found with the id of/

/** Finds the error in an answer: 400 for nearly all, and `success: false` with any status. */
export function findError(answer: ApiAnswer, now: number): ApiError | undefined {
  const parsed = v.safeParse(Failure, answer.body)
  const failure = parsed.success ? parsed.output : undefined
  if (answer.ok && failure?.success !== false && failure?.status !== 'error') return undefined
  const message = failure?.error ?? failure?.message ?? undefined
  const isLimited = answer.status === 429 || failure?.errorType === TOO_MANY || message?.includes(`[${TOO_MANY}]`)
  if (isLimited) return omitUndefined({ message, reason: 'rate_limit' as const, retryAfterSecs: resetOf(answer, now) })
  return omitUndefined({
    message,
    reason: GONE.test(message ?? '') ? ('not_found' as const) : answer.ok ? ('invalid_request' as const) : undefined,
  })
}

/** A time in milliseconds, which every answer has. */
function resetOf({ header }: ApiAnswer, now: number): number | undefined {
  const reset = Number(header('x-ratelimit-reset') ?? NaN)
  return Number.isFinite(reset) ? Math.max(0, (reset - now) / 1000) : undefined
}
