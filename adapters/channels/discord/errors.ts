import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { ApiAnswer, ApiError, GatewayCloseCodes } from 'svc/channels'
import { Failure } from './wire.ts'

/** Explains a failed request. Source: https://docs.discord.com/developers/topics/rate-limits */
export function findError({ ok, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { message, retry_after: retryAfterSecs, code } = parsed.output
  return omitUndefined({
    message: code ? `${message ?? ''} (${code})` : (message ?? undefined),
    retryAfterSecs: retryAfterSecs ?? undefined,
  })
}

/** The pause in seconds that an answer asks for on all routes of the bot. */
export function globalPauseOf({ status, body, header }: ApiAnswer): number | undefined {
  if (status !== 429) return undefined
  const parsed = v.safeParse(Failure, body)
  const failure = parsed.success ? parsed.output : undefined
  if (failure?.global !== true && header('x-ratelimit-global') !== 'true') return undefined
  const seconds = failure?.retry_after ?? Number(header('retry-after') ?? NaN)
  return Number.isFinite(seconds) ? seconds : undefined
}

const SESSION_ENDED: ReadonlySet<number> = new Set([1000, 1001, 4003, 4007, 4009])

/** Source: https://docs.discord.com/developers/topics/opcodes-and-status-codes */
export const closeCodes: GatewayCloseCodes = {
  fatal: new Map([
    [4004, 'the token is not valid'],
    [4010, 'the shard is not valid'],
    [4011, 'the bot is in so many servers that it needs sharding, which is not supported'],
    [4012, 'this version of the gateway is not served any more'],
    [4013, 'the value of `intents` is not valid'],
    [4014, 'an intent is not permitted: switch it on in the developer portal, under Bot, or change `intents`'],
  ]),
  endsSession: (code) => SESSION_ENDED.has(code),
}
