import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure } from './wire.ts'

type Meaning = Pick<ApiError, 'reason' | 'retry'>
const BAD_APP: Meaning = { reason: 'auth', retry: 'never' }
/** The token was taken back before its time: `AccessToken` asks for another one. */
const BAD_TOKEN: Meaning = { reason: 'auth', retry: 'later' }
const TOO_MANY: Meaning = { reason: 'rate_limit', retry: 'later' }
const GONE: Meaning = { reason: 'not_found', retry: 'never' }

/**
 * Codes that the status does not explain. Sources: https://open.feishu.cn/document/server-docs/api-call-guide/generic-error-code,
 * the pages of the requests, and the client of the long connection (looked up in November 2026).
 */
const MEANINGS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [403, BAD_APP],
  [514, BAD_APP],
  [10_003, BAD_APP],
  [10_014, BAD_APP],
  [99_991_543, BAD_APP],
  [99_991_662, BAD_APP],
  [99_991_673, BAD_APP],
  [99_991_661, BAD_TOKEN],
  [99_991_663, BAD_TOKEN],
  [99_991_668, BAD_TOKEN],
  [99_991_671, BAD_TOKEN],
  [99_991_677, BAD_TOKEN],
  [11_232, TOO_MANY],
  [230_020, TOO_MANY],
  [99_991_400, TOO_MANY],
  [99_991_403, TOO_MANY],
  [230_011, GONE],
  [230_110, GONE],
  // Of the long connection: the system is busy, it failed, and there are 50 connections already.
  [1, { reason: 'overloaded', retry: 'later' }],
  [1_000_040_343, { reason: 'server_error', retry: 'later' }],
  [1_000_040_350, { reason: 'overloaded', retry: 'later' }],
])

/** Finds the error in an answer, which can have status 200. */
export function findError({ body, header }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success || parsed.output.code === 0) return undefined
  const { code, msg } = parsed.output
  const meaning = MEANINGS.get(code)
  return {
    message: `${code} ${msg ?? ''}`.trim(),
    ...meaning,
    retryAfterSecs: meaning === TOO_MANY ? secondsOf(header('x-ogw-ratelimit-reset')) : undefined,
  }
}

function secondsOf(reset: string | undefined): number | undefined {
  const seconds = Number(reset)
  return reset !== undefined && Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}
