import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** The queue was dropped, as after a restart of the server: another one is registered, and what was missed is read. */
const QUEUE_GONE = 'BAD_EVENT_QUEUE_ID'
/** The only sign of a message that is gone. */
const MESSAGE_GONE = 'Invalid message(s)'

/** Explains a failed request. */
export function findError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { code, msg, 'retry-after': retryAfter } = parsed.output
  if (code === QUEUE_GONE) return { message: msg, reason: 'cut', retry: 'later' }
  if (msg === MESSAGE_GONE) return { message: msg, reason: 'not_found' }
  return { message: msg, retryAfterSecs: status === 429 ? (retryAfter ?? undefined) : undefined }
}
