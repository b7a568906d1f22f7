import * as v from 'valibot'
import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** Explains a failed request. Source: https://spec.matrix.org/latest/client-server-api/#standard-error-response */
export function findError({ ok, body, header }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { errcode, error, retry_after_ms: ms } = parsed.output
  return omitUndefined({
    message: [errcode, error].filter((part) => part != null).join(': '),
    reason: reasonOf(errcode),
    // The header is the newer of the two.
    retryAfterSecs: ms != null && header('retry-after') === undefined ? ms / 1000 : undefined,
  })
}

function reasonOf(code: string | null | undefined): ApiError['reason'] {
  if (code === 'M_LIMIT_EXCEEDED') return 'rate_limit'
  if (code === 'M_UNKNOWN_TOKEN' || code === 'M_MISSING_TOKEN' || code === 'M_USER_DEACTIVATED') return 'auth'
  if (code === 'M_USER_LOCKED' || code === 'M_USER_SUSPENDED') return 'auth'
  return undefined
}

/** The homeserver says that the password is wrong with 403, which is not a token's end but of the same kind. */
export function asSignInFailure(error: unknown): unknown {
  if (!(error instanceof UpstreamFailure) || error.retry === 'later') return error
  return new UpstreamFailure('matrix', `Signing in failed: ${error.message}`, { reason: 'auth', retry: 'never' })
}
