import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { toFailure } from 'svc/channels'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

type Meaning = Pick<ApiError, 'reason' | 'retry'>
const BAD_APP: Meaning = { reason: 'auth', retry: 'never' }
/** The token was taken back before its time: `AccessToken` asks for another one. */
const BAD_TOKEN: Meaning = { reason: 'auth', retry: 'later' }
const TOO_MANY: Meaning = { reason: 'rate_limit', retry: 'later' }
const NOBODY: Meaning = { reason: 'not_found', retry: 'never' }
const REFUSED: Meaning = { reason: 'invalid_request', retry: 'never' }
const PASSING: Meaning = { reason: 'server_error', retry: 'later' }

/** Source: https://developer.work.weixin.qq.com/document/path/90313 (looked up in November 2026). */
const MEANINGS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [40_001, BAD_APP],
  [40_013, BAD_APP],
  [40_056, BAD_APP],
  [40_091, BAD_APP],
  // The application may not do this any more, or is switched off.
  [48_002, BAD_APP],
  [48_006, BAD_APP],
  [50_003, BAD_APP],
  // Requests from this address are not allowed.
  [60_020, BAD_APP],
  [301_042, BAD_APP],
  // The secret is that of another application.
  [301_002, BAD_APP],
  // The robot, or its secret, is unknown.
  [853_000, BAD_APP],
  [40_014, BAD_TOKEN],
  [41_001, BAD_TOKEN],
  [42_001, BAD_TOKEN],
  [45_009, TOO_MANY],
  [45_033, TOO_MANY],
  [60_111, NOBODY],
  [81_013, NOBODY],
  // The request that is answered is too old, or was answered.
  [846_605, REFUSED],
  [846_608, REFUSED],
])
/** Codes of requests that fail again. Every other one that is not known, such as -1, is a failure of WeCom. */
const REFUSED_RANGES = [
  [40_000, 94_999],
  [300_000, 302_999],
  [600_000, 670_999],
  [844_000, 844_999],
  [2_000_000, 2_000_999],
] as const

function explain(code: number, message: string | null | undefined): ApiError {
  return { message: `${code} ${message ?? ''}`.trim(), ...meaningOf(code) }
}

function meaningOf(code: number): Meaning {
  const known = MEANINGS.get(code)
  if (known) return known
  return REFUSED_RANGES.some(([first, last]) => code >= first && code <= last) ? REFUSED : PASSING
}

/** Finds the error in an answer of the API. */
export function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success || parsed.output.errcode === 0) return undefined
  return explain(parsed.output.errcode, parsed.output.errmsg)
}

/** The failure that an answer over the long connection means. */
export function frameFailure(code: number, message: string | null | undefined): UpstreamFailure {
  return toFailure(
    'wecom',
    { status: 200, ok: true, body: undefined, header: () => undefined },
    explain(code, message),
    0,
  )
}

/** The robot was refused: what does not pass by itself is a matter of the credentials. */
export function refusedRobot(code: number, message: string | null | undefined): UpstreamFailure {
  const failure = frameFailure(code, message)
  return failure.retry === 'later'
    ? failure
    : new UpstreamFailure('wecom', failure.message, { reason: 'auth', retry: 'never' })
}
