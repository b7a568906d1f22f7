import * as v from 'valibot'
import { readFailedBody, readFailedJson, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { Failure } from './wire.ts'
import type { WireError } from './wire.ts'

const CONTEXT = /context[_ ](?:length|window)|maximum context|too many tokens|input is too long/i
const FILTERED = /content[_ ](?:filter|policy)|safety|moderation|invalid_prompt|bio_policy/i
/** Money that is used up does not come back by waiting a few seconds. */
const QUOTA = /insufficient_quota|exceeded your current quota|billing/i

/** The failure that an answer with a status of 400 and over means. Reads its body. `now` is in ms since 1970. */
export async function failureOf(name: string, response: OutboundResponse, now: number): Promise<UpstreamFailure> {
  const { status } = response
  const text = await readFailedBody(response)
  const error = parseError(text)
  const { reason, retry } = classify(status, error, text)
  const retryAfterSecs =
    retry === 'later'
      ? readRetryAfter(response.header('retry-after'), response.header('retry-after-ms'), now)
      : undefined
  const message = shortened(
    error?.message ?? (status === 401 || status === 403 ? 'the key is missing or not accepted' : text),
  )
  return new UpstreamFailure(name, `${name} answered ${status}${message && `: ${message}`}`, {
    reason,
    retry,
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}

/** The failure that an error within an answer of 200 means. */
export function failureInStream(name: string, error: WireError): UpstreamFailure {
  return new UpstreamFailure(
    name,
    `${name} failed during its answer: ${shortened(error.message ?? String(error.code ?? error.type ?? 'without a reason'))}`,
    classify(0, error, ''),
  )
}

/** `status` is 0 within an answer. */
function classify(
  status: number,
  error: WireError | undefined,
  text: string,
): { readonly reason: UpstreamReason; readonly retry: 'later' | 'never' } {
  const said = `${error?.code ?? ''} ${error?.type ?? ''} ${error?.message ?? text}`
  const reason = reasonOf(status, said)
  const later =
    reason === 'rate_limit'
      ? !QUOTA.test(said)
      : reason === 'overloaded' || reason === 'server_error' || reason === 'timeout'
  return { reason, retry: later ? 'later' : 'never' }
}
function reasonOf(status: number, said: string): UpstreamReason {
  if (status === 401 || status === 403) return 'auth'
  if (CONTEXT.test(said) && status < 500) return 'context_length'
  if (status === 429 || /rate_limit|insufficient_quota/i.test(said)) return 'rate_limit'
  if (status === 503 || status === 529 || /overloaded|slow_down/i.test(said)) return 'overloaded'
  if (status === 408) return 'timeout'
  if (FILTERED.test(said) && status < 500) return 'content_filter'
  if (status >= 500 || (status === 0 && !/invalid|image|unsupported/i.test(said))) return 'server_error'
  return status === 404 ? 'not_found' : status === 413 ? 'context_length' : 'invalid_request'
}

function parseError(text: string): WireError | undefined {
  const parsed = v.safeParse(Failure, readFailedJson(text))
  if (!parsed.success) return undefined
  const { error } = parsed.output
  return typeof error === 'string' ? { message: error, code: undefined, type: undefined } : (error ?? undefined)
}
