import * as v from 'valibot'
import { readFailedBody, readFailedJson, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse, UpstreamReason } from 'svc/sdk'
import { Failure } from './wire.ts'
import type { WireStatus } from './wire.ts'

const CONTEXT = /input token count|exceeds the maximum number of tokens|context (?:length|window)|too many tokens/i
/** Google answers a key it does not know with 400. */
const KEY = new Set(['API_KEY_INVALID', 'API_KEY_EXPIRED', 'API_KEY_SERVICE_BLOCKED'])

/** The failure that an answer with a status of 400 and over means. Reads its body. */
export async function failureOf(name: string, response: OutboundResponse, now: number): Promise<UpstreamFailure> {
  const text = await readFailedBody(response)
  const status = readStatus(text)
  return failure(name, response.status, status, {
    what: `${name} answered ${response.status}`,
    text: status?.message ?? text,
    retryAfterSecs: readRetryAfter(response.header('retry-after'), response.header('retry-after-ms'), now),
  })
}

/** The failure that a status within an answer of 200 means. */
export function failureInStream(name: string, status: WireStatus): UpstreamFailure {
  return failure(name, status.code ?? 500, status, {
    what: `${name} failed during its answer`,
    text: status.message ?? 'without a reason',
    retryAfterSecs: undefined,
  })
}

/** The failure of a prompt that Google does not pass on to a model. */
export function blocked(name: string, reason: string, message: string | null | undefined): UpstreamFailure {
  return new UpstreamFailure(
    name,
    `${name} refused the prompt (${reason})${message ? `: ${shortened(message)}` : ''}`,
    { reason: 'content_filter', retry: 'never' },
  )
}

function failure(
  name: string,
  code: number,
  status: WireStatus | undefined,
  said: { what: string; text: string; retryAfterSecs: number | undefined },
): UpstreamFailure {
  const details = status?.details ?? []
  const reason = reasonOf(
    code,
    said.text,
    details.map((detail) => detail.reason ?? ''),
  )
  // What may be used in a day does not come back by waiting a few seconds.
  const spent = details.some(({ violations }) => violations?.some(({ quotaId }) => /PerDay/i.test(quotaId ?? '')))
  const later =
    reason === 'rate_limit' ? !spent : reason === 'overloaded' || reason === 'server_error' || reason === 'timeout'
  const asked = details
    .map(({ retryDelay }) => /^(\d+(?:\.\d+)?)s$/.exec(retryDelay ?? '')?.[1])
    .find((secs) => secs !== undefined)
  const retryAfterSecs = later ? (said.retryAfterSecs ?? (asked === undefined ? undefined : Number(asked))) : undefined
  const text = shortened(said.text)
  return new UpstreamFailure(name, `${said.what}${text ? `: ${text}` : ''}`, {
    reason,
    retry: later ? 'later' : 'never',
    ...(retryAfterSecs !== undefined && { retryAfterSecs }),
  })
}

function reasonOf(code: number, text: string, reasons: readonly string[]): UpstreamReason {
  if (code === 401 || code === 403 || reasons.some((reason) => KEY.has(reason))) return 'auth'
  if (code === 429) return 'rate_limit'
  if (code === 408 || code === 504) return 'timeout'
  if (code === 503 || code === 529) return 'overloaded'
  if (code >= 500) return 'server_error'
  if (code === 404) return 'not_found'
  return code === 413 || CONTEXT.test(text) ? 'context_length' : 'invalid_request'
}

function readStatus(text: string): WireStatus | undefined {
  const data = readFailedJson(text)
  // An answer to a stream wraps its error in a list.
  const read = v.safeParse(Failure, Array.isArray(data) ? data[0] : data)
  return read.success ? read.output.error : undefined
}
