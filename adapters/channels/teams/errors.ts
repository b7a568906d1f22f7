import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure, TokenFailure } from './wire.ts'

/** Explains a failed request to the Bot Connector. */
export function findError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  const message = parsed.success ? textOf(parsed.output) : undefined
  // The token has expired, or was taken back.
  if (status === 401) return { message, reason: 'auth', retry: 'later' }
  // Two requests met: https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit
  return status === 412 ? { message, reason: 'overloaded' } : { message }
}

function textOf(failure: v.InferOutput<typeof Failure>): string {
  if ('message' in failure) return failure.message
  const { code, message } = failure.error
  return [code, message].filter((part) => part != null && part !== '').join(': ')
}

/** Explains why no access token was issued. Wrong credentials have the statuses 400 and 401. */
export function findTokenError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(TokenFailure, body)
  const isRefused = status === 400 || status === 401
  // The second line and those after it are numbers for the support.
  const [line] = parsed.success ? (parsed.output.error_description ?? parsed.output.error).split(/\r?\n/, 1) : []
  return { message: line, reason: isRefused ? 'auth' : undefined }
}
