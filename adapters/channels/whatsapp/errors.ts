import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** Codes of https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes that the status does not explain. */
const MEANINGS: ReadonlyMap<number, Omit<ApiError, 'message'>> = new Map<number, Omit<ApiError, 'message'>>([
  [0, { reason: 'auth', retry: 'never' }],
  [190, { reason: 'auth', retry: 'never' }],
  // Rate limits of the app, of the account, of the number, and of this pair of sender and recipient.
  [4, { reason: 'rate_limit', retry: 'later' }],
  [80_007, { reason: 'rate_limit', retry: 'later' }],
  [130_429, { reason: 'rate_limit', retry: 'later' }],
  [131_048, { reason: 'rate_limit', retry: 'later' }],
  [131_056, { reason: 'rate_limit', retry: 'later' }],
  [131_000, { reason: 'server_error', retry: 'later' }],
  [131_016, { reason: 'overloaded', retry: 'later' }],
  [133_004, { reason: 'overloaded', retry: 'later' }],
  // More than a day after the last message of the person: only templates are delivered.
  [131_047, { reason: 'invalid_request', retry: 'never' }],
  [131_026, { reason: 'invalid_request', retry: 'never' }],
  // The account is locked or restricted.
  [368, { reason: 'auth', retry: 'never' }],
  [131_031, { reason: 'auth', retry: 'never' }],
])

export function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { code, message, error_data } = parsed.output.error
  const details = error_data?.details
  return { message: details === undefined ? message : `${message}: ${details}`, ...MEANINGS.get(code) }
}
