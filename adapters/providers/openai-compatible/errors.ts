import * as v from 'valibot'
import { readFailedBody, readFailedJson, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { Failure } from './wire.ts'
import type { WireError } from './wire.ts'

const CONTEXT =
  /context[_ ](?:length|window)|maximum context|too many tokens|prompt is too long|reduce the length|input is too long/i
const FILTERED = /content[_ ](?:filter|policy|management)|safety system|moderation|data_inspection/i
const QUOTA = /insufficient_quota|exceeded your current quota|billing|insufficient balance/i

/** The failure that an answer with a status of 400 and over means. Reads its body. */
export async function failureOf(name: string, response: OutboundResponse, now: number): Promise<UpstreamFailure> {
  const { status } = response
  const text = await readFailedBody(response)
  const error = parseError(text)
  const said = `${error?.code ?? ''} ${error?.type ?? ''} ${error?.message ?? text}`
  const reason = reasonOf(status, said)
  const message = error?.message ?? (status === 401 || status === 403 ? 'the key is missing or not accepted' : text)
  // A quota that is used up does not come back by waiting a few seconds.
  const later =
    reason === 'rate_limit' ? !QUOTA.test(said) : reason === 'overloaded' || reason === 'server_error' || status === 408
  const retryAfterSecs = later
    ? readRetryAfter(response.header('retry-after'), response.header('retry-after-ms'), now)
    : undefined
  return new UpstreamFailure(name, `${name} answered ${status}${message ? `: ${shortened(message)}` : ''}`, {
    reason,
    retry: later ? 'later' : 'never',
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}

/** The failure that an error object within an answer of 200 means. */
export function failureInStream(name: string, error: WireError | string): UpstreamFailure {
  const { message, code, type } =
    typeof error === 'string' ? { message: error, code: undefined, type: undefined } : error
  const status = typeof code === 'number' ? code : /^\d{3}$/.test(code ?? '') ? Number(code) : 0
  const reason = reasonOf(status, `${code ?? ''} ${type ?? ''} ${message ?? ''}`)
  const never =
    reason === 'auth' ||
    reason === 'context_length' ||
    reason === 'content_filter' ||
    reason === 'not_found' ||
    (reason === 'invalid_request' && status !== 0)
  return new UpstreamFailure(name, `${name} failed during its answer: ${shortened(message ?? 'without a reason')}`, {
    reason: reason === 'invalid_request' && status === 0 ? 'server_error' : reason,
    retry: never ? 'never' : 'later',
  })
}

function reasonOf(status: number, said: string): UpstreamReason {
  if (status === 401 || status === 403) return FILTERED.test(said) ? 'content_filter' : 'auth'
  if (status === 402) return 'rate_limit'
  if (status === 408) return 'timeout'
  // Some answer a context that is too long with 413 or 429; waiting would not help.
  if (CONTEXT.test(said) && (status < 500 || status === 0)) return 'context_length'
  if (status === 429 || /rate_limit/i.test(said)) return 'rate_limit'
  if (status === 503 || status === 529 || /overloaded/i.test(said)) return 'overloaded'
  if (status >= 500) return 'server_error'
  if (FILTERED.test(said)) return 'content_filter'
  return status === 404 ? 'not_found' : status === 413 ? 'context_length' : 'invalid_request'
}

function parseError(text: string): WireError | undefined {
  const data = readFailedJson(text)
  // Gemini's compatible API wraps the object in a list.
  const parsed = v.safeParse(Failure, Array.isArray(data) ? data[0] : data)
  if (!parsed.success) return undefined
  const { error, message, detail } = parsed.output
  if (typeof error === 'string') return { message: error, code: undefined, type: undefined }
  if (error) return error
  return { message: message ?? (typeof detail === 'string' ? detail : undefined), code: undefined, type: undefined }
}
