import { omitUndefined, readFailedBody, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'

/** What a failure means, for the caller that decides about another try. */
export interface FailureClass {
  readonly reason: UpstreamReason
  readonly retry: 'later' | 'never'
}
export interface ClassifiedFailure extends FailureClass {
  /** The vendor's own explanation. `undefined`: it gave none, and the body is shown. */
  readonly message: string | undefined
  /** Seconds to wait, where the vendor says so in another place than `Retry-After`. */
  readonly retryAfterSecs?: number | undefined
}
/** Explains a response with an error status. `body` is its text, cut to 64 KB. */
export type FailureClassifier = (response: OutboundResponse, body: string) => ClassifiedFailure

const TRANSIENT: ReadonlySet<UpstreamReason> = new Set(['overloaded', 'server_error', 'timeout'])

/**
 * Whether a failure of this kind passes by itself. A rate limit does, unless it is a quota that is used up: that does
 * not come back by waiting a few seconds.
 */
export function failureClass(reason: UpstreamReason, isQuotaExhausted = false): FailureClass {
  const passes = reason === 'rate_limit' ? !isQuotaExhausted : TRANSIENT.has(reason)
  return { reason, retry: passes ? 'later' : 'never' }
}

/** What a status means by itself. Vendors have more to say in their error types and messages. */
export function reasonOfStatus(status: number): UpstreamReason {
  if (status === 401 || status === 403) return 'auth'
  if (status === 402 || status === 429) return 'rate_limit'
  if (status === 404) return 'not_found'
  if (status === 413) return 'context_length'
  if (status === 408 || status === 504) return 'timeout'
  if (status === 503 || status === 529) return 'overloaded'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** The failure that a response with an error status means. Reads its body. */
export async function toUpstreamFailure(
  name: string,
  response: OutboundResponse,
  classify: FailureClassifier,
): Promise<UpstreamFailure> {
  const body = await readFailedBody(response)
  const { reason, retry, message, retryAfterSecs } = classify(response, body)
  const text = shortened(message ?? (reason === 'auth' ? 'the key is missing or not accepted' : body))
  const requested = readRetryAfter(response.header('retry-after'), response.header('retry-after-ms'), Date.now())
  return new UpstreamFailure(
    name,
    `${name} answered ${response.status}${text && `: ${text}`}`,
    omitUndefined({ reason, retry, retryAfterSecs: retry === 'later' ? (requested ?? retryAfterSecs) : undefined }),
  )
}

/** The failure that an error within a streamed answer of status 200 means. */
export function failureInAnswer(
  name: string,
  message: string | null | undefined,
  { reason, retry, retryAfterSecs }: Omit<ClassifiedFailure, 'message'>,
): UpstreamFailure {
  const text = shortened(message ?? 'without a reason')
  return new UpstreamFailure(
    name,
    `${name} failed during its answer: ${text}`,
    omitUndefined({ reason, retry, retryAfterSecs }),
  )
}
