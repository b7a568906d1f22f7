import { isNotHeld } from 'svc/internal'
import { Refusal, UpstreamFailure, omitUndefined } from 'svc/sdk'
import type { TurnFailure } from '../../journal/contract.ts'

/** What a person is told of a failed turn; `undefined` for a defect. */
export function explain(error: unknown): string | undefined {
  return error instanceof Refusal || error instanceof UpstreamFailure ? error.message : undefined
}

/** The same with its code, as it is kept with the turn and with the message that was not answered. */
export function failureOf(error: unknown): TurnFailure {
  if (error instanceof Refusal) {
    const { code, message, retryAfterSecs } = error
    return { code, message, retryable: passing.has(code), retryAfterSecs }
  }
  if (error instanceof UpstreamFailure) {
    const retryable = error.retry === 'later'
    const code = retryable ? 'service_unavailable' : 'internal_error'
    return { code, message: error.message, retryable, retryAfterSecs: error.retryAfterSecs }
  }
  return { code: 'internal_error', message: 'internal error', retryable: true }
}
/** Whether a batch was not written, because another daemon has taken over what it was about. */
export function isTakenOver(error: unknown): boolean {
  return error instanceof Refusal && isNotHeld(error.cause)
}
/** For who waits at a daemon that lost the session: the turn ends elsewhere, and not by this. */
export class SessionLost extends Refusal {
  constructor(turnId: string) {
    super(
      'service_unavailable',
      'This daemon was cut off from the database for longer than its lease, and another one has taken the session over: ' +
        `GET /api/turns/${turnId} tells what becomes of the message`,
      { details: { turn_id: turnId }, retryAfterSecs: 5 },
    )
  }
}
/** The failure thrown again, for whoever asks a second time. */
export function refusalOf({ code, message, retryAfterSecs }: TurnFailure, turnId: string): Refusal {
  return new Refusal(code, message, { details: { turn_id: turnId }, retryAfterSecs })
}
/** Of a turn that failed under a version that kept no code. */
export function unknownFailure(error: string | undefined): TurnFailure {
  return { code: 'internal_error', message: error ?? 'the reason is not recorded', retryable: true }
}
/** What a later try may not meet. */
const passing: ReadonlySet<string> = new Set(['rate_limit', 'service_unavailable', 'conflict'])

/** Adds the provider's name to an upstream failure, because a failed connection knows only an address. */
export function naming(error: unknown, provider: string | undefined): unknown {
  if (
    !(error instanceof UpstreamFailure) ||
    provider === undefined ||
    error.message.toLowerCase().includes(provider.toLowerCase())
  )
    return error
  return new UpstreamFailure(provider, `${provider}: ${error.message}`, {
    reason: error.reason,
    retry: error.retry,
    cause: error,
    ...omitUndefined({ retryAfterSecs: error.retryAfterSecs }),
  })
}
