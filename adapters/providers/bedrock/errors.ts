import * as v from 'valibot'
import { readFailedJson } from 'svc/sdk'
import type { OutboundResponse, UpstreamFailure, UpstreamReason } from 'svc/sdk'
import { failureClass, failureInAnswer, reasonOfStatus } from 'svc/providers'
import type { ClassifiedFailure, FailureClass } from 'svc/providers'
import { Failure } from './wire.ts'

// Source: https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
const REASONS: Readonly<Record<string, UpstreamReason>> = {
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
const CONTEXT = new RegExp(
  [
    '(?:input|prompt) is too long',
    'too many (?:input )?tokens',
    'maximum (?:context|tokens)',
    'context (?:window|length|limit)',
    "exceeds? the (?:model'?s )?(?:context|maximum)",
  ].join('|'),
  'i',
)
const FILTERED = /content filter|blocked by|guardrail.*(?:block|interven)|usage polic/i

/** Explains a response with an error status. */
export function classifyFailure(response: OutboundResponse, body: string): ClassifiedFailure {
  const { type, message } = parseError(body, response.header('x-amzn-errortype'))
  return { ...classify(response.status, type, message ?? body), message }
}

/** The failure that an exception within an answer of status 200 means. */
export function failureInStream(name: string, rawType: string, body: string): UpstreamFailure {
  const { message } = parseError(body, rawType)
  return failureInAnswer(name, message ?? rawType, classify(undefined, rawType, message ?? body))
}

/** `status` is `undefined` within an answer. */
function classify(status: number | undefined, rawType: string, message: string): FailureClass {
  const type = rawType.toLowerCase()
  return failureClass(reasonOf(status, type, message), type === 'servicequotaexceededexception')
}

function reasonOf(status: number | undefined, type: string, message: string): UpstreamReason {
  if (status === undefined || status < 500) {
    if (CONTEXT.test(message)) return 'context_length'
    if (FILTERED.test(message)) return 'content_filter'
  }
  const known = REASONS[type]
  if (known) return known
  // 424: the model failed.
  return status === undefined || status === 424 ? 'server_error' : reasonOfStatus(status)
}

/**
 * The type may have the name of a service and an address around it: `com.amazon.coral#ThrottlingException:http://…`.
 */
function parseError(
  body: string,
  header: string | undefined,
): { readonly type: string; readonly message: string | undefined } {
  const parsed = v.safeParse(Failure, readFailedJson(body))
  const { message, Message, __type } = parsed.success ? parsed.output : {}
  return {
    type: (header ?? __type ?? '').replace(/^.*#/, '').replace(/:.*$/, ''),
    message: message ?? Message ?? undefined,
  }
}
