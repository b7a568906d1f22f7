import { UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'

/** Reason codes of MQTT 5 and, up to 5, return codes of 3.1.1. */
const MEANINGS: Readonly<Record<number, readonly [UpstreamReason, 'never' | 'later']>> = {
  1: ['invalid_request', 'never'],
  2: ['invalid_request', 'never'],
  3: ['overloaded', 'later'],
  4: ['auth', 'never'],
  5: ['auth', 'never'],
  132: ['invalid_request', 'never'],
  133: ['invalid_request', 'never'],
  134: ['auth', 'never'],
  136: ['overloaded', 'later'],
  137: ['overloaded', 'later'],
  138: ['auth', 'never'],
  140: ['auth', 'never'],
  143: ['invalid_request', 'never'],
  144: ['invalid_request', 'never'],
  149: ['invalid_request', 'never'],
  151: ['rate_limit', 'later'],
  159: ['rate_limit', 'later'],
}

/** `isConnecting`: without permission to connect nothing works; without that for one topic others may. */
export function failureOf(error: unknown, broker: string, isConnecting: boolean): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error
  const code = error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : 0
  const notAuthorized = [isConnecting ? 'auth' : 'invalid_request', 'never'] as const
  const [reason, retry] = code === 135 ? notAuthorized : (MEANINGS[code] ?? (['network', 'later'] as const))
  const message = error instanceof Error ? error.message : String(error)
  return new UpstreamFailure('mqtt', `${broker}: ${message}`, { reason, retry, cause: error })
}
