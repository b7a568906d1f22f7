import * as v from 'valibot'
import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import type { ApiAnswer, ApiError, ErrorFinder } from 'svc/channels'
import { Failure } from './wire.ts'

/** A message of the same text came less than 30 seconds ago. */
export const DUPLICATE = 'msg_duplicate'
const DUPLICATE_SECS = 30
/** Reasons that pass. The codes are those of https://dev.twitch.tv/docs/irc/msg-id/ */
const PASSING: ReadonlySet<string> = new Set([DUPLICATE, 'msg_ratelimit', 'msg_slowmode'])

/** Explains a failed request. `now` is in milliseconds: the end of a pause is told as a time. */
export const errorFinder =
  (now: () => number): ErrorFinder =>
  (answer) =>
    answer.ok ? undefined : { message: messageOf(answer), retryAfterSecs: pauseOf(answer, now()) }

/** A refresh token that is refused comes with 400, and one of an account that is gone with 401. */
export function findAuthError(answer: ApiAnswer): ApiError | undefined {
  if (answer.ok) return undefined
  const isRefused = answer.status === 400 || answer.status === 401 || answer.status === 403
  return omitUndefined({ message: messageOf(answer), reason: isRefused ? ('auth' as const) : undefined })
}

/** Twitch answers with success, and has not shown the message. */
export function dropFailure(code: string, message: string): UpstreamFailure {
  const isPassing = PASSING.has(code)
  return new UpstreamFailure(
    'twitch',
    `twitch did not show the message: ${message || code}`,
    omitUndefined({
      reason: isPassing ? ('rate_limit' as const) : ('invalid_request' as const),
      retry: isPassing ? ('later' as const) : ('never' as const),
      retryAfterSecs: code === DUPLICATE ? DUPLICATE_SECS : undefined,
    }),
  )
}

function messageOf({ body }: ApiAnswer): string | undefined {
  const parsed = v.safeParse(Failure, body)
  return parsed.success ? parsed.output.message : undefined
}

function pauseOf({ status, header }: ApiAnswer, now: number): number | undefined {
  const reset = Number(header('ratelimit-reset') ?? NaN)
  return status === 429 && Number.isFinite(reset) ? Math.max(0, reset - now / 1000) : undefined
}
