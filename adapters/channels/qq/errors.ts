import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { ApiAnswer, ApiError, GatewayCloseCodes } from 'svc/channels'
import { Failure } from './wire.ts'

type Meaning = Pick<ApiError, 'reason' | 'retry'>

/** The token may have ended before its time. */
const EXPIRED: Meaning = { reason: 'auth', retry: 'later' }
const AUTH: Meaning = { reason: 'auth', retry: 'never' }
const REFUSED: Meaning = { reason: 'invalid_request', retry: 'never' }
const PASSING: Meaning = { reason: 'server_error', retry: 'later' }
const LIMITED: Meaning = { reason: 'rate_limit', retry: 'later' }
/** A message is accepted, and shown when somebody of the platform has looked at it. */
const AUDITED: ReadonlySet<number> = new Set([304_023, 304_024])
/** A reply with a number that this message was replied to with already. */
const DUPLICATE = 40_054_005
/** The message to remove is none: it was removed, or it never was. */
const GONE = 306_002

/** Codes that the status does not explain. Source: https://bot.q.qq.com/wiki/develop/api-v2/openapi/error/error.html */
const MEANINGS: ReadonlyMap<number, Meaning> = new Map([
  ...[11_241, 11_243, 11_244, 11_251, 11_261, 11_275, 11_265].map((code) => [code, EXPIRED] as const),
  ...[100_007, 100_016].map((code) => [code, AUTH] as const),
  ...[22_009, 20_028, 100_001].map((code) => [code, LIMITED] as const),
  ...[11_242, 11_252, 11_263, 11_281, 306_003, 306_005, 306_006].map((code) => [code, PASSING] as const),
  // Its own failures, also in fetching what a message contains.
  ...[304_006, 304_007, 304_008, 304_009, 304_010, 304_012, 304_016, 304_017].map((code) => [code, PASSING] as const),
  ...[304_018, 304_021, 304_029, 304_033, 304_044, 304_082, 304_083].map((code) => [code, PASSING] as const),
  ...[40_034_004, 40_054_006].map((code) => [code, PASSING] as const),
  [GONE, { reason: 'not_found', retry: 'never' }],
])
/** Codes of requests that fail again, whatever their status. */
const REFUSED_RANGES = [
  [11_253, 11_282],
  [50_006, 50_057],
  [304_000, 304_999],
  [306_000, 306_999],
  [40_000_000, 40_999_999],
] as const

/** Explains a failed request; errors come with status 200, too. */
export function findError({ ok, body }: ApiAnswer): ApiError | undefined {
  const code = codeOf(body)
  if (code === undefined || code === 0 || (ok && AUDITED.has(code))) return undefined
  const { message } = v.parse(Failure, body)
  return { message: `${code} ${message ?? ''}`.trim(), ...meaningOf(code, ok) }
}

function meaningOf(code: number, ok: boolean): Meaning {
  const known = MEANINGS.get(code)
  if (known) return known
  if (REFUSED_RANGES.some(([first, last]) => code >= first && code <= last)) return REFUSED
  return ok ? PASSING : {}
}

function codeOf(body: unknown): number | undefined {
  const parsed = v.safeParse(Failure, body)
  return parsed.success ? (parsed.output.code ?? parsed.output.err_code ?? undefined) : undefined
}

/** Whether a reply was refused because its number is taken. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.message.includes(`: ${DUPLICATE} `)
}

/** The session goes on after these, and after the codes of WebSocket itself. */
const RESUMABLE: ReadonlySet<number> = new Set([4008, 4009])

export const closeCodes: GatewayCloseCodes = {
  fatal: new Map([
    [4010, 'the shard is not valid'],
    [4011, 'the bot is in so many servers that it needs sharding, which is not supported'],
    [4012, 'this version of the gateway is not served any more'],
    [4013, 'the value of `intents` is not valid'],
    [4014, 'an intent is not permitted: ask for it at q.qq.com, or change `intents`'],
    [4914, 'the bot is not published: use the address of the sandbox, or publish it'],
    [4915, 'the bot is banned'],
  ]),
  endsSession: (code) => code >= 4001 && code < 5000 && !RESUMABLE.has(code),
}
