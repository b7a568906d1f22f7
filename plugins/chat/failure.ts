import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { TurnFailure } from '../sessions/contract.ts'

/** What a person is told of a failed turn; `undefined` for a defect. */
export function explain(error: unknown): string | undefined {
  return error instanceof Refusal || error instanceof UpstreamFailure ? error.message : undefined
}

/** The same with a code, as it is kept with the message that was not answered. */
export function failureOf(error: unknown): TurnFailure {
  if (error instanceof Refusal) return { code: error.code, message: error.message, retryable: passing.has(error.code) }
  if (error instanceof UpstreamFailure) {
    const retryable = error.retry === 'later'
    return { code: retryable ? 'service_unavailable' : 'internal_error', message: error.message, retryable }
  }
  return { code: 'internal_error', message: 'internal error', retryable: true }
}
/** What a later try may not meet. */
const passing: ReadonlySet<string> = new Set(['rate_limit', 'service_unavailable', 'conflict'])

/** An upstream failure says which provider it is about, also when it comes from the connection and knows an address only. */
export function naming(error: unknown, provider: string | undefined): unknown {
  if (
    !(error instanceof UpstreamFailure) ||
    provider === undefined ||
    error.message.toLowerCase().includes(provider.toLowerCase())
  )
    return error
  return new UpstreamFailure(provider, `${provider}: ${error.message}`, {
    reason: error.reason,
    retry: error.retry,
    cause: error,
    ...(error.retryAfterSecs === undefined ? {} : { retryAfterSecs: error.retryAfterSecs }),
  })
}
