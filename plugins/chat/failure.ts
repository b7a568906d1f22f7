import { Refusal, UpstreamFailure } from 'svc/sdk'

/** What a person is told of a failed turn; `undefined` for a defect. */
export function explain(error: unknown): string | undefined {
  return error instanceof Refusal || error instanceof UpstreamFailure ? error.message : undefined
}

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
