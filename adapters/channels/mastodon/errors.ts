import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

/** 403 that are about the token or the account, and not about one post. */
const OF_ACCOUNT = /outside the authorized scopes|your login is (?:currently )?(?:disabled|pending)/i

/** Explains a failed request. */
export function findError({ ok, status, body, header }: ApiAnswer, now: number): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  const message = parsed.success ? (parsed.output.error_description ?? parsed.output.error) : undefined
  return omitUndefined({
    message,
    reason: status === 403 && OF_ACCOUNT.test(message ?? '') ? ('auth' as const) : undefined,
    retryAfterSecs: status === 429 ? secondsUntil(header('x-ratelimit-reset'), now) : undefined,
  })
}

/** The header has a date: app/lib/rate_limiter.rb and config/initializers/rack_attack.rb of github.com/mastodon/mastodon. */
function secondsUntil(date: string | undefined, now: number): number | undefined {
  const ms = Date.parse(date ?? '')
  return Number.isNaN(ms) ? undefined : Math.max(0, (ms - now) / 1000)
}
