import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

const NOT_MODIFIED = 304
const NOT_A_MESSAGE = 405

/** Explains a failed request of an account. */
export function findError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const message = messageOf(body)
  // Nothing is new, and what was removed is no message any more.
  if (status === NOT_MODIFIED || status === NOT_A_MESSAGE)
    return omitUndefined({ message, reason: 'not_found' as const })
  return { message }
}

/** Explains a failed request of a bot. 401 is about one conversation: the bot is not switched on there. */
export function findBotError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  if (status !== 401) return { message: messageOf(body) }
  return {
    message: 'the bot is not switched on in this conversation, or its secret is another',
    reason: 'invalid_request',
  }
}

function messageOf(body: unknown): string | undefined {
  const parsed = v.safeParse(Failure, body)
  return (parsed.success && parsed.output.ocs.meta.message) || undefined
}
