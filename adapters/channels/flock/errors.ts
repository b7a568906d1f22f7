import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** They have the statuses 400 and 403, which other failures have too. */
const REFUSED: ReadonlySet<string> = new Set(['InvalidToken', 'InvalidUserToken', 'MissingUserToken', 'AppDisabled'])

export function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { error, description } = parsed.output
  const message = description ? `${error}: ${description}` : error
  return { message, reason: REFUSED.has(error) ? 'auth' : undefined }
}
