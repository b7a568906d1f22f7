import * as v from 'valibot'
import { readFailedJson } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { failureClass, reasonOfStatus } from 'svc/providers'
import type { ClassifiedFailure } from 'svc/providers'
import { Failure } from './wire.ts'

const CONTEXT = /too many tokens|size limit exceeded|context length|maximum context/i
/** The monthly quota of a trial key. */
const QUOTA = /trial key[^]*month|monthly limit|billing/i

/** Explains a response with an error status. */
export function classifyFailure({ status }: OutboundResponse, body: string): ClassifiedFailure {
  const parsed = v.safeParse(Failure, readFailedJson(body))
  const message = parsed.success ? (parsed.output.message ?? '') : body
  return { ...failureClass(reasonOf(status, message), QUOTA.test(message)), message }
}

/** Source: https://docs.cohere.com/reference/errors */
function reasonOf(status: number, message: string): UpstreamReason {
  // A status of Cohere's own: the request or the answer contains a blocked word.
  if (status === 498) return 'content_filter'
  const reason = reasonOfStatus(status)
  return reason === 'invalid_request' && CONTEXT.test(message) ? 'context_length' : reason
}
