import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

type Meaning = Omit<ApiError, 'message'>
const AUTH: Meaning = { reason: 'auth', retry: 'never' }
const NEVER: Meaning = { reason: 'invalid_request', retry: 'never' }
const RATE_LIMIT: Meaning = { reason: 'rate_limit', retry: 'later' }

/** What the errors mean: https://developers.viber.com/docs/api/rest-bot-api/#error-codes */
const MEANINGS: ReadonlyMap<number, Meaning> = new Map([
  // The webhook could not be called.
  [1, { reason: 'overloaded', retry: 'later' }],
  [2, AUTH],
  [3, NEVER],
  [4, NEVER],
  // The person is not on Viber, or left the bot.
  [5, NEVER],
  [6, NEVER],
  // The bot is blocked, unknown or suspended.
  [7, AUTH],
  [8, AUTH],
  [9, AUTH],
  // No webhook is set yet: it is when the connection opens.
  [10, { reason: 'overloaded', retry: 'later' }],
  [11, NEVER],
  [12, RATE_LIMIT],
  [13, NEVER],
  [14, NEVER],
  [15, AUTH],
  [16, NEVER],
  [17, NEVER],
  [18, NEVER],
  [19, NEVER],
  [20, NEVER],
  // The country is not served, or what may be sent in a month is used up.
  [21, NEVER],
  [22, NEVER],
  [23, NEVER],
  [24, NEVER],
])

/** Finds the error in an answer, which has status 200. */
export function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success || parsed.output.status === 0) return undefined
  const { status, status_message: message } = parsed.output
  const meaning = MEANINGS.get(status) ?? { reason: 'server_error', retry: 'later' }
  return { message: `${message ?? 'an error'} (${status})`, ...meaning }
}
