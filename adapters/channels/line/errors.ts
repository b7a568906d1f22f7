import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** An earlier attempt with the same retry key was accepted. */
export class AlreadySent extends UpstreamFailure {
  readonly messageId: string
  constructor(messageId: string) {
    super('line', 'line: the message was accepted before', { reason: 'invalid_request', retry: 'never' })
    this.messageId = messageId
  }
}

/** Explains a failed request. Source: https://developers.line.biz/en/docs/messaging-api/handling-http-429-errors/ */
export function findError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  const failure = parsed.success ? parsed.output : undefined
  if (status === 409) throw new AlreadySent(failure?.sentMessages?.[0]?.id ?? '')
  if (!failure) return undefined
  const details = (failure.details ?? []).map(({ property, message }) => [property, message].filter(Boolean).join(': '))
  const message = [failure.message, ...details].join('; ')
  // The allowance of the month is used up: that does not pass soon.
  if (status === 429 && /monthly limit/i.test(failure.message))
    return { message, reason: 'invalid_request', retry: 'never' }
  return { message }
}

/** Whether LINE refused a reply because its token was used before, or is too old. */
export function isSpentToken(error: unknown): boolean {
  return error instanceof UpstreamFailure && /invalid reply token/i.test(error.message)
}
