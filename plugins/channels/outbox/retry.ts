import { messageOf } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'

export interface BackOff {
  readonly minMs: number
  readonly maxMs: number
}

/** What a failed send means for the message. */
export interface SendFailure {
  /** `dead`: it will fail again. `auth`: the account has to be configured first. */
  readonly outcome: 'retry' | 'dead' | 'auth'
  /** The platform is busy or away: waited for, however many attempts that takes. */
  readonly isAway: boolean
  /** It failed on the side of the platform, which did not say that it is asked too often. */
  readonly isServerError: boolean
  readonly error: string
  /** The platform may have taken the message although it did not say so. */
  readonly isUncertain: boolean
  /** The pause that the platform asks for. */
  readonly pauseMs: number | undefined
}

export function classifyFailure(error: unknown): SendFailure {
  const message = messageOf(error)
  // Such as an address that the daemon may not reach: nothing was sent, and nothing will be.
  if (error instanceof Refusal && error.code === 'forbidden') return refused(message)
  if (!(error instanceof UpstreamFailure))
    return {
      outcome: 'retry',
      isAway: false,
      isServerError: false,
      error: message,
      isUncertain: true,
      pauseMs: undefined,
    }
  const { reason, retry, retryAfterSecs } = error
  return {
    outcome: reason === 'auth' ? 'auth' : retry === 'never' ? 'dead' : 'retry',
    isAway: retry === 'later',
    isServerError: retry === 'later' && reason !== 'rate_limit' && reason !== 'auth',
    error: message,
    isUncertain: !isUnreached(error) && ['network', 'timeout', 'cut', 'malformed'].includes(reason),
    pauseMs: retryAfterSecs === undefined ? undefined : retryAfterSecs * 1000,
  }
}

const refused = (error: string): SendFailure => ({
  outcome: 'dead',
  isAway: false,
  isServerError: false,
  error,
  isUncertain: false,
  pauseMs: undefined,
})

/** Codes of failures before a connection was there: the platform got nothing. */
const unreachedCodes = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])
const MAX_CAUSES = 5

function isUnreached(error: unknown): boolean {
  let at = error
  for (let depth = 0; depth < MAX_CAUSES && at instanceof Error; depth++) {
    if ('code' in at && typeof at.code === 'string' && unreachedCodes.has(at.code)) return true
    at = at.cause
  }
  return false
}

/** Doubles with each attempt. Half is random, so that chats that failed together do not come back together. */
export function backOffMs(attempts: number, random: number, { minMs, maxMs }: BackOff): number {
  const longest = Math.min(maxMs, minMs * 2 ** Math.max(0, attempts - 1))
  return Math.round(longest * (0.5 + 0.5 * random))
}
