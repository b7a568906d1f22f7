import * as v from 'valibot'
import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

const NO_ACCESS = 'invalid_access'

/** Explains a failed request. */
export function findError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { errors, error_type: type, extras } = parsed.output
  const message = [type, ...errors].filter((part) => part != null).join(' ')
  return omitUndefined({
    message: message === '' ? undefined : message,
    retryAfterSecs: status === 429 ? (extras?.wait_seconds ?? undefined) : undefined,
  })
}

/** As above, where only a wrong key or a wrong name can be refused. */
export function findIdentityError(answer: ApiAnswer): ApiError | undefined {
  const error = findError(answer)
  return answer.status === 403 || answer.status === 404 ? { ...error, reason: 'auth', retry: 'never' } : error
}

/** Whether a request was refused, for what may be a wrong key as well as a topic that is closed to the bot. */
export function isNoAccess(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.message.includes(`403: ${NO_ACCESS}`)
}

/** Whether a post was refused for what is in it: among others, that there is the same one already. */
export function isRefusedPost(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.message.includes('answered 422')
}
