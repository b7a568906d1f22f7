import * as v from 'valibot'
import { readJson, shortened, UpstreamFailure } from 'svc/sdk'
import type { Fetch, UpstreamReason } from 'svc/sdk'
import { failureClass } from 'svc/providers'
import type { ExpiringToken } from 'svc/providers'
import type { Credentials } from './credentials.ts'

const MAX_RESPONSE_BYTES = 65_536

const TokenResponse = v.object({ access_token: v.string(), expires_in: v.optional(v.number(), 3600) })
const TokenError = v.object({ error: v.string(), error_description: v.optional(v.string()) })

export interface AccessToken extends ExpiringToken {
  readonly token: string
}

/** Exchanges credentials for an access token of OAuth 2. */
export async function exchangeToken(name: string, fetch: Fetch, credentials: Credentials): Promise<AccessToken> {
  const now = Date.now()
  const response = await fetch(credentials.tokenUri, {
    method: 'POST',
    body: (await credentials.grant(Math.floor(now / 1000))).toString(),
    totalTimeoutMs: 20_000,
    maxBytes: MAX_RESPONSE_BYTES,
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
  })
  const body = await response.text()
  if (!response.ok) throw exchangeFailure(name, response.status, body)
  const read = v.safeParse(TokenResponse, jsonOf(body))
  if (!read.success)
    throw new UpstreamFailure(name, `${name} got no access token from ${new URL(credentials.tokenUri).origin}`, {
      reason: 'malformed',
      retry: 'later',
    })
  return { token: read.output.access_token, expiresAt: now + read.output.expires_in * 1000 }
}

function exchangeFailure(name: string, status: number, body: string): UpstreamFailure {
  const read = v.safeParse(TokenError, jsonOf(body))
  const { error, error_description: description } = read.success ? read.output : {}
  const code = error === undefined ? `${status}` : `${status}, ${error}`
  const details = description ? `: ${shortened(description)}` : ''
  let reason: UpstreamReason = 'auth'
  if (status === 429) reason = 'rate_limit'
  else if (status >= 500) reason = 'server_error'
  return new UpstreamFailure(name, `${name} was refused an access token (${code})${details}`, failureClass(reason))
}

/** The body as JSON; `undefined` for anything else, which no schema accepts. */
function jsonOf(body: string): unknown {
  try {
    return readJson(body)
  } catch {
    return undefined /* the caller reports it, with the status or the address */
  }
}
