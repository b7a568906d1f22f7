import * as v from 'valibot'
import { readFailedBody, readFailedJson, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { Failure } from './wire.ts'

// Source: https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
const kinds: Readonly<Record<string, UpstreamReason>> = {
  accessdeniedexception: 'auth',
  unrecognizedclientexception: 'auth',
  invalidsignatureexception: 'auth',
  expiredtokenexception: 'auth',
  incompletesignature: 'auth',
  missingauthenticationtokenexception: 'auth',
  resourcenotfoundexception: 'not_found',
  throttlingexception: 'rate_limit',
  toomanyrequestsexception: 'rate_limit',
  servicequotaexceededexception: 'rate_limit',
  modeltimeoutexception: 'timeout',
  modelnotreadyexception: 'overloaded',
  serviceunavailableexception: 'overloaded',
  internalserverexception: 'server_error',
  modelstreamerrorexception: 'server_error',
  modelerrorexception: 'server_error',
  validationexception: 'invalid_request',
}
const CONTEXT =
  /input is too long|too many (?:input )?tokens|maximum (?:context|tokens)|context (?:window|length|limit)|prompt is too long|exceeds? the (?:model'?s )?(?:context|maximum)/i
const FILTERED = /content filter|blocked by|guardrail.*(?:block|interven)|usage polic/i

/** The failure that an answer with a status of 400 and over means. Reads its body. `now` is in ms since 1970. */
export async function failureOf(name: string, response: OutboundResponse, now: number): Promise<UpstreamFailure> {
  const { status } = response
  const text = await readFailedBody(response)
  const { type, message } = parseError(text, response.header('x-amzn-errortype'))
  const { reason, retry } = classify(status, type, message ?? text)
  const retryAfterSecs = retry === 'later' ? readRetryAfter(response.header('retry-after'), undefined, now) : undefined
  const shown = shortened(message ?? (reason === 'auth' ? 'the key is missing or not accepted' : text))
  return new UpstreamFailure(name, `${name} answered ${status}${shown && `: ${shown}`}`, {
    reason,
    retry,
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}

/** The failure that an exception within an answer of 200 means. */
export function failureInStream(name: string, type: string, text: string): UpstreamFailure {
  const { message } = parseError(text, type)
  return new UpstreamFailure(
    name,
    `${name} failed during its answer: ${shortened(message ?? type)}`,
    classify(0, type, message ?? text),
  )
}

/** `status` is 0 within an answer. */
function classify(
  status: number,
  type: string,
  message: string,
): { readonly reason: UpstreamReason; readonly retry: 'later' | 'never' } {
  const reason = reasonOf(status, type.toLowerCase(), message)
  const later =
    reason === 'rate_limit'
      ? type.toLowerCase() !== 'servicequotaexceededexception'
      : reason === 'overloaded' || reason === 'server_error' || reason === 'timeout'
  return { reason, retry: later ? 'later' : 'never' }
}
function reasonOf(status: number, type: string, message: string): UpstreamReason {
  if (status < 500 && CONTEXT.test(message)) return 'context_length'
  if (status < 500 && FILTERED.test(message)) return 'content_filter'
  const known = kinds[type]
  if (known) return known
  if (status === 401 || status === 403) return 'auth'
  if (status === 429) return 'rate_limit'
  if (status === 404) return 'not_found'
  if (status === 413) return 'context_length'
  if (status === 408 || status === 504) return 'timeout'
  if (status === 503 || status === 529) return 'overloaded'
  return status >= 500 || status === 424 || status === 0 ? 'server_error' : 'invalid_request'
}

/**
 * The type may have the name of a service and an address around it: `com.amazon.coral#ThrottlingException:http://…`.
 */
function parseError(
  text: string,
  header: string | undefined,
): { readonly type: string; readonly message: string | undefined } {
  const parsed = v.safeParse(Failure, readFailedJson(text))
  const { message, Message, __type } = parsed.success ? parsed.output : {}
  return {
    type: (header ?? __type ?? '').replace(/^.*#/, '').replace(/:.*$/, ''),
    message: message ?? Message ?? undefined,
  }
}
