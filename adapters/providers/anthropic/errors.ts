import * as v from 'valibot'
import { readFailedBody, readFailedJson, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { Failure } from './wire.ts'
import type { WireError } from './wire.ts'

// Source: https://platform.claude.com/docs/en/api/errors
const kinds: Readonly<Record<string, UpstreamReason>> = {
  authentication_error: 'auth',
  permission_error: 'auth',
  billing_error: 'rate_limit',
  not_found_error: 'not_found',
  request_too_large: 'context_length',
  rate_limit_error: 'rate_limit',
  api_error: 'server_error',
  timeout_error: 'timeout',
  overloaded_error: 'overloaded',
}
const CONTEXT =
  /prompt is too long|exceed(?:s|ed)? (?:the )?(?:context|maximum)|context (?:window|length|limit)|too many total text bytes/i
const FILTERED = /content filter|blocked by|usage polic/i
/** Money that is used up does not come back by waiting a few seconds. */
const QUOTA = /credit balance|billing|spend limit|usage limits?\b.*regain|quota/i
const limited = ['requests', 'tokens', 'input-tokens', 'output-tokens'] as const

/** The failure that an answer with a status of 400 and over means. Reads its body. `now` is in ms since 1970. */
export async function failureOf(name: string, response: OutboundResponse, now: number): Promise<UpstreamFailure> {
  const { status } = response
  const text = await readFailedBody(response)
  const error = parseError(text)
  const { reason, retry } = classify(status, error?.type ?? '', error?.message ?? text)
  const retryAfterSecs =
    retry === 'later'
      ? (readRetryAfter(response.header('retry-after'), response.header('retry-after-ms'), now) ??
        (status === 429 ? readReset(response, now) : undefined))
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

/** The failure that an `error` event within an answer of 200 means. */
export function failureInStream(name: string, error: WireError | string): UpstreamFailure {
  const { type, message } = typeof error === 'string' ? { type: '', message: error } : error
  return new UpstreamFailure(
    name,
    `${name} failed during its answer: ${shortened(message ?? type ?? 'without a reason')}`,
    classify(0, type ?? '', message ?? ''),
  )
}

/** `status` is 0 within an answer. */
function classify(
  status: number,
  type: string,
  message: string,
): { readonly reason: UpstreamReason; readonly retry: 'later' | 'never' } {
  const reason = reasonOf(status, type, message)
  const later =
    reason === 'rate_limit'
      ? status !== 402 && type !== 'billing_error' && !QUOTA.test(message)
      : reason === 'overloaded' || reason === 'server_error' || reason === 'timeout'
  return { reason, retry: later ? 'later' : 'never' }
}
function reasonOf(status: number, type: string, message: string): UpstreamReason {
  if (CONTEXT.test(message) && status < 500) return 'context_length'
  if (FILTERED.test(message) && status < 500) return 'content_filter'
  if (QUOTA.test(message) && status === 400) return 'rate_limit'
  if (status === 503 || status === 529) return 'overloaded'
  const known = kinds[type]
  if (known) return known
  if (status === 401 || status === 403) return 'auth'
  if (status === 402 || status === 429) return 'rate_limit'
  if (status === 404) return 'not_found'
  if (status === 413) return 'context_length'
  if (status === 408 || status === 504) return 'timeout'
  return status >= 500 || (status === 0 && type !== 'invalid_request_error') ? 'server_error' : 'invalid_request'
}

/** Seconds until the last of the limits that are used up is whole again. */
function readReset(response: OutboundResponse, now: number): number | undefined {
  const times = limited.flatMap((each) => {
    const at = Date.parse(response.header(`anthropic-ratelimit-${each}-reset`) ?? '')
    return response.header(`anthropic-ratelimit-${each}-remaining`) === '0' && !Number.isNaN(at)
      ? [Math.max(0, (at - now) / 1000)]
      : []
  })
  return times.length > 0 ? Math.max(...times) : undefined
}

function parseError(text: string): WireError | undefined {
  const parsed = v.safeParse(Failure, readFailedJson(text))
  if (!parsed.success) return undefined
  const { error } = parsed.output
  return typeof error === 'string' ? { type: undefined, message: error } : (error ?? undefined)
}
