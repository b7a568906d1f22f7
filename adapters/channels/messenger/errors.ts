import { findGraphError } from 'svc/channels'
import type { ApiAnswer, ApiError } from 'svc/channels'

/**
 * Codes of https://developers.facebook.com/documentation/business-messaging/messenger-platform/error-codes that the
 * status does not explain, some with a subcode.
 */
const MEANINGS: Readonly<Record<string, Omit<ApiError, 'message'>>> = {
  // More than a day after the last message of the person.
  '10:2018278': { reason: 'invalid_request', retry: 'never' },
  10: { reason: 'invalid_request', retry: 'never' },
  200: { reason: 'invalid_request', retry: 'never' },
  // The person cannot be reached: they blocked the page, or are no longer there.
  551: { reason: 'invalid_request', retry: 'never' },
  100: { reason: 'invalid_request', retry: 'never' },
  1200: { reason: 'overloaded', retry: 'later' },
}

export function findError(answer: ApiAnswer): ApiError | undefined {
  return findGraphError(answer, MEANINGS)
}
