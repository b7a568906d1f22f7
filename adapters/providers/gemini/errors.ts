import * as v from 'valibot'
import { readFailedJson, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { failureClass, failureInAnswer, reasonOfStatus } from 'svc/providers'
import type { ClassifiedFailure } from 'svc/providers'
import { Failure } from './wire.ts'
import type { WireStatus } from './wire.ts'

const CONTEXT = /input token count|exceeds the maximum number of tokens|context (?:length|window)|too many tokens/i
/** Google answers a key it does not know with 400. */
const KEY_REASONS = new Set(['API_KEY_INVALID', 'API_KEY_EXPIRED', 'API_KEY_SERVICE_BLOCKED'])

/** Explains a response with an error status. */
export function classifyFailure({ status }: OutboundResponse, body: string): ClassifiedFailure {
  const error = parseStatus(body)
  return classify(status, error, error?.message ?? body)
}

/** The failure that a status within an answer of 200 means. */
export function failureInStream(name: string, status: WireStatus): UpstreamFailure {
  const failure = classify(status.code ?? 500, status, status.message ?? 'without a reason')
  return failureInAnswer(name, failure.message, failure)
}

/** The failure of a prompt that Google does not pass on to a model. */
export function promptBlocked(name: string, reason: string, message: string | null | undefined): UpstreamFailure {
  return new UpstreamFailure(
    name,
    `${name} refused the prompt (${reason})${message ? `: ${shortened(message)}` : ''}`,
    { reason: 'content_filter', retry: 'never' },
  )
}

function classify(code: number, status: WireStatus | undefined, message: string): ClassifiedFailure {
  const details = status?.details ?? []
  const isKeyInvalid = details.some(({ reason }) => KEY_REASONS.has(reason ?? ''))
  const isDailyQuota = details.some(({ violations }) =>
    violations?.some(({ quotaId }) => /PerDay/i.test(quotaId ?? '')),
  )
  const retryDelay = details
    .map((detail) => /^(\d+(?:\.\d+)?)s$/.exec(detail.retryDelay ?? '')?.[1])
    .find((secs) => secs !== undefined)
  const failure = failureClass(isKeyInvalid ? 'auth' : reasonOf(code, message), isDailyQuota)
  return {
    ...failure,
    message,
    retryAfterSecs: failure.retry === 'never' || retryDelay === undefined ? undefined : Number(retryDelay),
  }
}

function reasonOf(code: number, message: string): UpstreamReason {
  const reason = reasonOfStatus(code)
  return reason === 'invalid_request' && CONTEXT.test(message) ? 'context_length' : reason
}

function parseStatus(body: string): WireStatus | undefined {
  const data = readFailedJson(body)
  // The answer to a request for a stream wraps its error in a list.
  const parsed = v.safeParse(Failure, Array.isArray(data) ? data[0] : data)
  return parsed.success ? parsed.output.error : undefined
}
