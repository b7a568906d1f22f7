import * as v from 'valibot'
import type { ApiAnswer, ApiError, ErrorFinder } from 'svc/channels'
import { Failure } from './wire.ts'

/** Errors of a token or an account that come with status 400. */
const AUTH: ReadonlySet<string> = new Set(['ExpiredToken', 'InvalidToken', 'AccountTakedown', 'AccountDeactivated'])

/** Explains a failed request. `now` is in milliseconds: the end of a pause is told as a time. */
export const errorFinder =
  (now: () => number): ErrorFinder =>
  (answer) => {
    if (answer.ok) return undefined
    const parsed = v.safeParse(Failure, answer.body)
    if (!parsed.success) return { retryAfterSecs: pauseOf(answer, now()) }
    const { error, message } = parsed.output
    return {
      message: message === '' || message === error ? error : `${error}: ${message}`,
      reason: AUTH.has(error) ? 'auth' : undefined,
      retryAfterSecs: pauseOf(answer, now()),
    } satisfies ApiError
  }

function pauseOf({ status, header }: ApiAnswer, now: number): number | undefined {
  const reset = Number(header('ratelimit-reset') ?? NaN)
  return status === 429 && Number.isFinite(reset) ? Math.max(0, reset - now / 1000) : undefined
}
