import * as v from 'valibot'
import type { ApiAnswer, ApiError } from 'svc/channels'
import { RestFailure, RpcFailure } from './wire.ts'
import type { RpcError } from './wire.ts'

// Source: src/main/java/org/asamk/signal/jsonrpc of github.com/AsamK/signal-cli (looked up in November 2026)
const IO = -3
const UNTRUSTED_KEY = -4
const RATE_LIMIT = -5
const CAPTCHA_REJECTED = -6
const INTERNAL = -32_603
/** The account of the bot was unlinked or registered elsewhere. */
const SIGNED_OUT = /[Aa]uthorization ?[Ff]ailed|\bUser (?:\S+ )?is not registered|account does not exist/
/** What the REST API tells of failures that pass: all its errors have the status 400. */
const PASSING = /IOException|network failure|timed? ?out|timeout|connection|closed unexpectedly/i

/** Explains an error of JSON-RPC, which comes with status 200. */
export function findRpcError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(RpcFailure, body)
  return parsed.success ? explain(parsed.output.error) : undefined
}

function explain({ code, message, data }: RpcError): ApiError {
  const results = data?.response?.results ?? []
  const pauses = results.flatMap(({ retryAfterSeconds: seconds }) => (seconds == null ? [] : [seconds]))
  const retryAfterSecs = pauses.length > 0 ? Math.max(...pauses) : undefined
  if (code === RATE_LIMIT) return { message, reason: 'rate_limit', retry: 'later', retryAfterSecs }
  if (code === CAPTCHA_REJECTED) return { message, reason: 'rate_limit', retry: 'later' }
  if (SIGNED_OUT.test(message)) return { message, reason: 'auth', retry: 'never' }
  if (code === IO || results.some(({ type }) => type === 'NETWORK_FAILURE'))
    return { message, reason: 'network', retry: 'later' }
  if (code === UNTRUSTED_KEY)
    return { message: `${message}: trust the new key of the person in signal-cli`, reason: 'invalid_request' }
  if (code === INTERNAL) return { message, reason: 'server_error', retry: 'later' }
  return { message, reason: 'invalid_request', retry: 'never' }
}

export function findRestError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(RestFailure, body)
  if (ok || !parsed.success) return undefined
  const { error: message } = parsed.output
  if (SIGNED_OUT.test(message)) return { message, reason: 'auth', retry: 'never' }
  if (status === 400 && PASSING.test(message)) return { message, reason: 'network', retry: 'later' }
  return { message }
}
