import * as v from 'valibot'
import { readFailedJson, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { failureClass, failureInAnswer, reasonOfStatus } from 'svc/providers'
import type { ClassifiedFailure } from 'svc/providers'
import { Failure } from './wire.ts'

const CONTEXT =
  /(?:prompt|input|context)[^.]{0,40}(?:length|too long|exceed)|maximum (?:context|input|sequence)|too many tokens/i
/** Replicate's codes for predictions. Source: https://replicate.com/docs/topics/predictions/error-codes */
const FILTERED = /E005|flagged as sensitive|NSFW|safety (?:filter|system)/i
const OVERLOADED = /E00[34]|high demand|temporarily unavailable|capacity/i

/** Explains a response with an error status. */
export function classifyFailure({ status }: OutboundResponse, body: string): ClassifiedFailure {
  const message = messageOf(body)
  const waitSecs = /available in (\d+(?:\.\d+)?) ?s/i.exec(message)?.[1]
  const reason = reasonOfStatus(status)
  return {
    ...failureClass(
      reason === 'invalid_request' && CONTEXT.test(message) ? 'context_length' : reason,
      // The credit is used up.
      status === 402,
    ),
    message,
    retryAfterSecs: waitSecs === undefined ? undefined : Number(waitSecs),
  }
}

/** The failure of a prediction that was accepted. */
export function predictionFailure(name: string, message: string): UpstreamFailure {
  return failureInAnswer(name, message, failureClass(predictionReason(message)))
}

/** The failure of a prediction that was cancelled at Replicate. */
export function predictionCancelled(name: string): UpstreamFailure {
  return new UpstreamFailure(name, `${name} cancelled the prediction`, { reason: 'cut', retry: 'later' })
}

function predictionReason(message: string): UpstreamReason {
  if (FILTERED.test(message)) return 'content_filter'
  if (CONTEXT.test(message)) return 'context_length'
  return OVERLOADED.test(message) ? 'overloaded' : 'server_error'
}

function messageOf(body: string): string {
  const parsed = v.safeParse(Failure, readFailedJson(body))
  if (!parsed.success) return body
  const { detail, title } = parsed.output
  return typeof detail === 'string' ? detail : (title ?? body)
}
