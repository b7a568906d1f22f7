import * as v from 'valibot'
import { readFailedJson } from 'svc/sdk'
import type { OutboundResponse, UpstreamFailure, UpstreamReason } from 'svc/sdk'
import { failureClass, failureInAnswer } from 'svc/providers'
import type { ClassifiedFailure, FailureClass } from 'svc/providers'
import { Failure } from './wire.ts'
import type { WireError } from './wire.ts'

const CONTEXT = /context[_ ](?:length|window)|maximum context|too many tokens|input is too long/i
const FILTERED = /content[_ ](?:filter|policy)|safety|moderation|invalid_prompt|bio_policy/i
const QUOTA = /insufficient_quota|exceeded your current quota|billing/i

/** Explains a response with an error status. */
export function classifyFailure({ status }: OutboundResponse, body: string): ClassifiedFailure {
  const error = parseError(body)
  return {
    ...classify(status, error, body),
    message: error?.message ?? (status === 401 || status === 403 ? undefined : body),
  }
}

/** The failure that an error within an answer of status 200 means. */
export function failureInStream(name: string, error: WireError): UpstreamFailure {
  const { message, code, type } = error
  return failureInAnswer(name, message ?? (code == null ? type : String(code)), classify(undefined, error, ''))
}

/** `status` is `undefined` within an answer. */
function classify(status: number | undefined, error: WireError | undefined, body: string): FailureClass {
  const text = `${error?.code ?? ''} ${error?.type ?? ''} ${error?.message ?? body}`
  return failureClass(reasonOf(status, text), QUOTA.test(text))
}

function reasonOf(status: number | undefined, text: string): UpstreamReason {
  if (status === 401 || status === 403) return 'auth'
  const isServerError = status !== undefined && status >= 500
  if (CONTEXT.test(text) && !isServerError) return 'context_length'
  if (status === 429 || /rate_limit|insufficient_quota/i.test(text)) return 'rate_limit'
  if (status === 503 || status === 529 || /overloaded|slow_down/i.test(text)) return 'overloaded'
  if (status === 408) return 'timeout'
  if (FILTERED.test(text) && !isServerError) return 'content_filter'
  if (isServerError || (status === undefined && !/invalid|image|unsupported/i.test(text))) return 'server_error'
  if (status === 404) return 'not_found'
  return status === 413 ? 'context_length' : 'invalid_request'
}

function parseError(body: string): WireError | undefined {
  const parsed = v.safeParse(Failure, readFailedJson(body))
  if (!parsed.success) return undefined
  const { error } = parsed.output
  return typeof error === 'string' ? { message: error, code: undefined, type: undefined } : (error ?? undefined)
}
