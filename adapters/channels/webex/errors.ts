import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** A file is still searched for viruses. */
const LOCKED = 423

/** Explains a failed request; the status says what it means. */
export function findError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  const { message, errors } = parsed.success ? parsed.output : {}
  // The message of most errors is one for all; a list beside it says more.
  const words = errors?.find(({ description }) => description)?.description ?? message ?? undefined
  return status === LOCKED ? { message: words, reason: 'overloaded', retry: 'later' } : { message: words }
}
