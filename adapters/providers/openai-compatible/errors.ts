import * as v from 'valibot'
import { readFailedJson } from 'svc/sdk'
import type { OutboundResponse, UpstreamFailure, UpstreamReason } from 'svc/sdk'
import { failureClass, failureInAnswer } from 'svc/providers'
import type { ClassifiedFailure } from 'svc/providers'
import { Failure } from './wire.ts'
import type { WireError } from './wire.ts'

const CONTEXT =
  /context[_ ](?:length|window)|maximum context|too many tokens|prompt is too long|reduce the length|input is too long/i
const FILTERED = /content[_ ](?:filter|policy|management)|safety system|moderation|data_inspection/i
const QUOTA = /insufficient_quota|exceeded your current quota|billing|insufficient balance/i
/** Failures that the same request meets again. */
const LASTING: ReadonlySet<UpstreamReason> = new Set([
  'auth',
  'context_length',
  'content_filter',
  'not_found',
  'invalid_request',
])

/** Explains a response with an error status. */
export function classifyFailure({ status }: OutboundResponse, body: string): ClassifiedFailure {
  const error = parseError(body)
  const text = `${error?.code ?? ''} ${error?.type ?? ''} ${error?.message ?? body}`
  return {
    ...failureClass(reasonOf(status, text), QUOTA.test(text)),
    message: error?.message ?? (status === 401 || status === 403 ? undefined : body),
  }
}

/** The failure that an error object within an answer of status 200 means. */
export function failureInStream(name: string, error: WireError | string): UpstreamFailure {
  const { message, code, type } = typeof error === 'string' ? messageOnly(error) : error
  const status = typeof code === 'number' || /^\d{3}$/.test(code ?? '') ? Number(code) : 0
  const reason = reasonOf(status, `${code ?? ''} ${type ?? ''} ${message ?? ''}`)
  // Without a status nothing tells whose fault it was, and the request was accepted.
  if (reason === 'invalid_request' && status === 0)
    return failureInAnswer(name, message, { reason: 'server_error', retry: 'later' })
  return failureInAnswer(name, message, { reason, retry: LASTING.has(reason) ? 'never' : 'later' })
}

function reasonOf(status: number, text: string): UpstreamReason {
  if (status === 401 || status === 403) return FILTERED.test(text) ? 'content_filter' : 'auth'
  if (status === 402) return 'rate_limit'
  if (status === 408) return 'timeout'
  // Some answer a context that is too long with 413 or 429; waiting would not help.
  if (CONTEXT.test(text) && status < 500) return 'context_length'
  if (status === 429 || /rate_limit/i.test(text)) return 'rate_limit'
  if (status === 503 || status === 529 || /overloaded/i.test(text)) return 'overloaded'
  if (status >= 500) return 'server_error'
  if (FILTERED.test(text)) return 'content_filter'
  if (status === 404) return 'not_found'
  return status === 413 ? 'context_length' : 'invalid_request'
}

const messageOnly = (message: string | undefined): WireError => ({ message, code: undefined, type: undefined })

function parseError(body: string): WireError | undefined {
  const data = readFailedJson(body)
  // Gemini's compatible API wraps the object in a list.
  const parsed = v.safeParse(Failure, Array.isArray(data) ? data[0] : data)
  if (!parsed.success) return undefined
  const { error, message, detail } = parsed.output
  if (typeof error === 'string') return messageOnly(error)
  return error ?? messageOnly(message ?? (typeof detail === 'string' ? detail : undefined))
}
