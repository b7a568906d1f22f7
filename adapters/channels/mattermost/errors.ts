import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** A larger number is a time, not a number of seconds. */
const EPOCH_SECS = 1_000_000_000

/** Explains a failed request. */
export function findError(answer: ApiAnswer, now: number): ApiError | undefined {
  if (answer.ok) return undefined
  const parsed = v.safeParse(Failure, answer.body)
  return omitUndefined({
    message: (parsed.success ? parsed.output.message : undefined) ?? undefined,
    retryAfterSecs: answer.status === 429 ? resetOf(answer, now) : undefined,
  })
}

/** Servers give the seconds that are left, as their code does, or the time, as their documentation says. */
function resetOf({ header }: ApiAnswer, now: number): number | undefined {
  const text = header('x-ratelimit-reset')
  if (header('retry-after') !== undefined || text === undefined || !/^\d+$/.test(text)) return undefined
  const reset = Number(text)
  return reset < EPOCH_SECS ? reset : Math.max(0, reset - now / 1000)
}
