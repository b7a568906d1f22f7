import { findGraphError } from 'svc/channels'
import type { ApiAnswer, ApiError } from 'svc/channels'

/** Codes of https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes that the status does not explain. */
const MEANINGS: Readonly<Record<string, Omit<ApiError, 'message'>>> = {
  // Rate limits of the account, of the number, and of this pair of sender and recipient.
  80007: { reason: 'rate_limit', retry: 'later' },
  130429: { reason: 'rate_limit', retry: 'later' },
  131048: { reason: 'rate_limit', retry: 'later' },
  131056: { reason: 'rate_limit', retry: 'later' },
  131000: { reason: 'server_error', retry: 'later' },
  131016: { reason: 'overloaded', retry: 'later' },
  133004: { reason: 'overloaded', retry: 'later' },
  // More than a day after the last message of the person: only templates are delivered.
  131047: { reason: 'invalid_request', retry: 'never' },
  131026: { reason: 'invalid_request', retry: 'never' },
  // The account is locked.
  131031: { reason: 'auth', retry: 'never' },
}

export function findError(answer: ApiAnswer): ApiError | undefined {
  return findGraphError(answer, MEANINGS)
}
