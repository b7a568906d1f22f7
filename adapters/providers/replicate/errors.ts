import * as v from 'valibot'
import { readFailedBody, readFailedJson, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { Failure } from './wire.ts'

const CONTEXT =
  /(?:prompt|input|context)[^.]{0,40}(?:length|too long|exceed)|maximum (?:context|input|sequence)|too many tokens/i
/** Replicate's codes for predictions. Source: https://replicate.com/docs/topics/predictions/error-codes */
const FLAGGED = /E005|flagged as sensitive|NSFW|safety (?:filter|system)/i
const BUSY = /E00[34]|high demand|temporarily unavailable|capacity/i

/** The failure that an answer with a status of 400 and over means. Reads its body. */
export async function failureOf(name: string, response: OutboundResponse, now: number): Promise<UpstreamFailure> {
  const { status } = response
  const text = await readFailedBody(response)
  const read = v.safeParse(Failure, readFailedJson(text))
  const detail = read.success ? read.output.detail : undefined
  const message = typeof detail === 'string' ? detail : read.success ? (read.output.title ?? text) : text
  const reason = reasonOf(status, message)
  // A credit that is used up does not come back by waiting.
  const later =
    (reason === 'rate_limit' && status !== 402) ||
    reason === 'overloaded' ||
    reason === 'server_error' ||
    reason === 'timeout'
  const asked = /available in (\d+(?:\.\d+)?) ?s/i.exec(message)?.[1]
  const retryAfterSecs = later
    ? (readRetryAfter(response.header('retry-after'), undefined, now) ??
      (asked === undefined ? undefined : Number(asked)))
    : undefined
  return new UpstreamFailure(name, `${name} answered ${status}${message ? `: ${shortened(message)}` : ''}`, {
    reason,
    retry: later ? 'later' : 'never',
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}

/** The failure of a prediction that was accepted. */
export function failed(name: string, message: string): UpstreamFailure {
  const reason: UpstreamReason = FLAGGED.test(message)
    ? 'content_filter'
    : CONTEXT.test(message)
      ? 'context_length'
      : BUSY.test(message)
        ? 'overloaded'
        : 'server_error'
  return new UpstreamFailure(name, `${name} failed during its answer: ${shortened(message)}`, {
    reason,
    retry: reason === 'overloaded' || reason === 'server_error' ? 'later' : 'never',
  })
}

function reasonOf(status: number, message: string): UpstreamReason {
  if (status === 401 || status === 403) return 'auth'
  if (status === 402 || status === 429) return 'rate_limit'
  if (status === 408 || status === 504) return 'timeout'
  if (status === 503 || status === 529) return 'overloaded'
  if (status >= 500) return 'server_error'
  if (status === 404) return 'not_found'
  return status === 413 || CONTEXT.test(message) ? 'context_length' : 'invalid_request'
}
