import * as v from 'valibot'
import { readFailedJson } from 'svc/sdk'
import type { OutboundResponse, UpstreamFailure, UpstreamReason } from 'svc/sdk'
import { failureClass, failureInAnswer, reasonOfStatus } from 'svc/providers'
import type { ClassifiedFailure, FailureClass } from 'svc/providers'
import { Failure } from './wire.ts'
import type { WireError } from './wire.ts'

// Source: https://platform.claude.com/docs/en/api/errors
const REASONS: Readonly<Record<string, UpstreamReason>> = {
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
const CONTEXT = new RegExp(
  [
    'prompt is too long',
    'exceed(?:s|ed)? (?:the )?(?:context|maximum)',
    'context (?:window|length|limit)',
    'too many total text bytes',
  ].join('|'),
  'i',
)
const FILTERED = /content filter|blocked by|usage polic/i
const QUOTA = /credit balance|billing|spend limit|usage limits?\b.*regain|quota/i
const LIMITS = ['requests', 'tokens', 'input-tokens', 'output-tokens'] as const

/** Explains a response with an error status. */
export function classifyFailure(response: OutboundResponse, body: string): ClassifiedFailure {
  const { status } = response
  const error = parseError(body)
  return {
    ...classify(status, error?.type ?? '', error?.message ?? body),
    message: error?.message ?? (status === 401 || status === 403 ? undefined : body),
    retryAfterSecs: status === 429 ? secsUntilReset(response) : undefined,
  }
}

/** The failure that an `error` event within an answer of status 200 means. */
export function failureInStream(name: string, error: WireError | string): UpstreamFailure {
  const { type, message } = typeof error === 'string' ? { type: '', message: error } : error
  return failureInAnswer(name, message ?? type, classify(undefined, type ?? '', message ?? ''))
}

/** `status` is `undefined` within an answer. */
function classify(status: number | undefined, type: string, message: string): FailureClass {
  const isQuotaExhausted = status === 402 || type === 'billing_error' || QUOTA.test(message)
  return failureClass(reasonOf(status, type, message), isQuotaExhausted)
}

function reasonOf(status: number | undefined, type: string, message: string): UpstreamReason {
  if (status === undefined || status < 500) {
    if (CONTEXT.test(message)) return 'context_length'
    if (FILTERED.test(message)) return 'content_filter'
    if (QUOTA.test(message) && status === 400) return 'rate_limit'
  }
  if (status === 503 || status === 529) return 'overloaded'
  const known = REASONS[type]
  if (known) return known
  if (status !== undefined) return reasonOfStatus(status)
  return type === 'invalid_request_error' ? 'invalid_request' : 'server_error'
}

/** Seconds until the last of the exhausted limits resets. */
function secsUntilReset(response: OutboundResponse): number | undefined {
  const now = Date.now()
  const waits = LIMITS.flatMap((limit) => {
    const resetAt = Date.parse(response.header(`anthropic-ratelimit-${limit}-reset`) ?? '')
    const isExhausted = response.header(`anthropic-ratelimit-${limit}-remaining`) === '0'
    return isExhausted && !Number.isNaN(resetAt) ? [Math.max(0, (resetAt - now) / 1000)] : []
  })
  return waits.length > 0 ? Math.max(...waits) : undefined
}

function parseError(body: string): WireError | undefined {
  const parsed = v.safeParse(Failure, readFailedJson(body))
  if (!parsed.success) return undefined
  const { error } = parsed.output
  return typeof error === 'string' ? { type: undefined, message: error } : (error ?? undefined)
}
