import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { Failure, SessionFailure } from './wire.ts'

type Meaning = Pick<ApiError, 'reason' | 'retry'>
const BAD_APP: Meaning = { reason: 'auth', retry: 'never' }
const TOO_MANY: Meaning = { reason: 'rate_limit', retry: 'later' }

/**
 * Codes that the status does not explain. Source: https://open.dingtalk.com/document/development/server-api-error-codes-1
 * (looked up in November 2026).
 */
const MEANINGS: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ['invalidClientIdOrSecret', BAD_APP],
  ['authFailed', BAD_APP],
  // The token was taken back before its time: `AccessToken` asks for another one.
  ['InvalidAuthentication', { reason: 'auth', retry: 'later' }],
  ['Forbidden.AccessDenied.QpsLimitForApi', TOO_MANY],
  ['Forbidden.AccessDenied.QpsLimitForAppkeyAndApi', TOO_MANY],
  ['Forbidden.AccessDenied.QpmLimitForAppkeyAndApi', TOO_MANY],
])
/** Codes of a session, which is a robot in one chat. */
const SESSION_MEANINGS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [-1, { reason: 'server_error', retry: 'later' }],
  [90_002, TOO_MANY],
  [90_018, TOO_MANY],
  [130_101, TOO_MANY],
])

/** Finds the error in an answer. */
export function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { code, message } = parsed.output
  return { message: `${code} ${message ?? ''}`.trim(), ...MEANINGS.get(code) }
}

/** Finds the error in the answer of a session, which has status 200. */
export function findSessionError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(SessionFailure, body)
  if (!parsed.success || parsed.output.errcode === 0) return undefined
  const { errcode: code, errmsg } = parsed.output
  return { message: `${code} ${errmsg ?? ''}`.trim(), ...SESSION_MEANINGS.get(code) }
}
