import * as v from 'valibot'
import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

const DUPLICATE = 'DuplicateNonce'
const SLOW_MODE = 'InSlowmode'

/** Explains a failed request. Source: https://github.com/stoatchat/stoatchat, crates/core/result */
export function findError({ ok, status, body, header }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  const failure = parsed.success ? parsed.output : {}
  const { type, error, permission, retry_after: wait } = failure
  const message = [type, permission ?? error].filter((part) => part != null).join(' ')
  return omitUndefined({
    message: message === '' ? undefined : message,
    retryAfterSecs: status === 429 ? secondsOf(type, wait ?? Number(header('x-ratelimit-reset-after'))) : undefined,
  })
}

function secondsOf(type: string | null | undefined, wait: number): number | undefined {
  if (!Number.isFinite(wait)) return undefined
  return type === SLOW_MODE ? wait : wait / 1000
}

/** Whether a message was refused because its key was used, with success or without. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.message.includes(`: ${DUPLICATE}`)
}
