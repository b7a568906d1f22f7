import * as v from 'valibot'
import { readFailedBody, readFailedJson, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { Failure } from './wire.ts'

const CONTEXT = /too many tokens|size limit exceeded|context length|maximum context/i
/** What a trial key may ask for in a month does not come back by waiting a few seconds. */
const SPENT = /trial key[^]*month|monthly limit|billing/i

/** The failure that an answer with a status of 400 and over means. Reads its body. */
export async function failureOf(name: string, response: OutboundResponse, now: number): Promise<UpstreamFailure> {
  const { status } = response
  const text = await readFailedBody(response)
  const read = v.safeParse(Failure, readFailedJson(text))
  const message = read.success ? (read.output.message ?? '') : text
  const reason = reasonOf(status, message)
  const later =
    reason === 'rate_limit'
      ? !SPENT.test(message)
      : reason === 'overloaded' || reason === 'server_error' || reason === 'timeout'
  const retryAfterSecs = later
    ? readRetryAfter(response.header('retry-after'), response.header('retry-after-ms'), now)
    : undefined
  return new UpstreamFailure(name, `${name} answered ${status}${message ? `: ${shortened(message)}` : ''}`, {
    reason,
    retry: later ? 'later' : 'never',
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}

/** Source: https://docs.cohere.com/reference/errors */
function reasonOf(status: number, message: string): UpstreamReason {
  if (status === 401 || status === 403) return 'auth'
  if (status === 402 || status === 429) return 'rate_limit'
  // Cohere's own: what was asked or answered holds a word that is not let through.
  if (status === 498) return 'content_filter'
  if (status === 408 || status === 504) return 'timeout'
  if (status === 503 || status === 529) return 'overloaded'
  if (status >= 500) return 'server_error'
  if (status === 404) return 'not_found'
  return status === 413 || CONTEXT.test(message) ? 'context_length' : 'invalid_request'
}
