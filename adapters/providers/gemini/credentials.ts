import { createPrivateKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { SignJWT } from 'jose'
import * as v from 'valibot'
import { readJson, shortened, UpstreamFailure } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const HOUR_SECS = 3600
/** A token is asked for anew so long before it ends, so that none ends on its way. */
const EARLY_MS = 60_000
const MAX_FILE_CHARS = 65_536

const ServiceAccount = v.object({
  type: v.literal('service_account'),
  client_email: v.string(),
  private_key: v.string(),
  private_key_id: v.optional(v.string()),
  token_uri: v.optional(v.pipe(v.string(), v.url()), 'https://oauth2.googleapis.com/token'),
  project_id: v.optional(v.string()),
})
/** What `gcloud auth application-default login` leaves behind. */
const User = v.object({
  type: v.literal('authorized_user'),
  client_id: v.string(),
  client_secret: v.string(),
  refresh_token: v.string(),
  token_uri: v.optional(v.pipe(v.string(), v.url()), 'https://oauth2.googleapis.com/token'),
  quota_project_id: v.optional(v.string()),
})
const File = v.variant('type', [ServiceAccount, User])
const Token = v.object({ access_token: v.string(), expires_in: v.optional(v.number(), HOUR_SECS) })
const TokenProblem = v.object({ error: v.string(), error_description: v.optional(v.string()) })

export interface Credentials {
  readonly projectId: string | undefined
  readonly quotaProject: string | undefined
  readonly tokenUri: string
  /** The form that is exchanged for a token. `now` in seconds. */
  grant(now: number): Promise<URLSearchParams>
}

/**
 * The credentials a key stands for: its JSON itself or the absolute path of a file with it. `undefined` for an
 * ordinary key. Throws
 * `UpstreamFailure` (auth) when they cannot be read; what is in the file is never part of a message.
 */
export async function readCredentials(name: string, key: string): Promise<Credentials | undefined> {
  const refuse = (why: string): UpstreamFailure =>
    new UpstreamFailure(name, `${name} cannot use its credentials: ${why}`, { reason: 'auth', retry: 'never' })
  let text = key.trim()
  if (!text.startsWith('{')) {
    if (!/^(?:\/|[A-Za-z]:[\\/])/.test(text)) return undefined
    const path = text
    text = await readFile(path, 'utf8').catch((error: unknown) => {
      throw refuse(
        `the file cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : 'error'})`,
      )
    })
  }
  if (text.length > MAX_FILE_CHARS) throw refuse('the file is too long')
  let data: unknown
  try {
    data = readJson(text)
  } catch {
    throw refuse('they are not JSON')
  }
  const read = v.safeParse(File, data)
  if (!read.success) throw refuse('expected the JSON of a service account, or of an application-default login')
  const file = read.output
  if (file.type === 'service_account') {
    return {
      projectId: file.project_id,
      quotaProject: undefined,
      tokenUri: file.token_uri,
      grant: async (now) =>
        new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
          assertion: await assertion(file, now, refuse),
        }),
    }
  }
  return {
    projectId: file.quota_project_id,
    quotaProject: file.quota_project_id,
    tokenUri: file.token_uri,
    grant: async () =>
      new URLSearchParams({
        grant_type: 'refresh_token',
        client_id: file.client_id,
        client_secret: file.client_secret,
        refresh_token: file.refresh_token,
      }),
  }
}

/** Source: https://developers.google.com/identity/protocols/oauth2/service-account#httprest (RFC 7523). */
async function assertion(
  account: v.InferOutput<typeof ServiceAccount>,
  now: number,
  refuse: (why: string) => Error,
): Promise<string> {
  const { client_email: email, private_key: key, private_key_id: kid, token_uri: audience } = account
  try {
    return await new SignJWT({ scope: SCOPE })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid !== undefined && { kid }) })
      .setIssuer(email)
      .setAudience(audience)
      .setIssuedAt(now)
      .setExpirationTime(now + HOUR_SECS)
      .sign(createPrivateKey(key))
  } catch {
    throw refuse('its private key is no RSA key in PEM')
  }
}

/** Access tokens, kept until they end. Calls at the same time share one exchange; a failed one is not kept. */
export function accessTokens(
  name: string,
  fetch: Fetch,
): (credentials: Credentials, signal: AbortSignal) => Promise<string> {
  const kept = new WeakMap<Credentials, { readonly token: string; readonly until: number }>()
  const asking = new WeakMap<Credentials, Promise<string>>()

  async function exchange(credentials: Credentials): Promise<string> {
    const now = Date.now()
    const response = await fetch(credentials.tokenUri, {
      method: 'POST',
      body: (await credentials.grant(Math.floor(now / 1000))).toString(),
      totalTimeoutMs: 20_000,
      maxBytes: MAX_FILE_CHARS,
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    })
    const text = await response.text()
    if (!response.ok) throw failed(response.status, text)
    let data: unknown
    try {
      data = readJson(text)
    } catch {
      data = undefined /* told apart below */
    }
    const read = v.safeParse(Token, data)
    if (!read.success)
      throw new UpstreamFailure(name, `${name} got no access token from ${new URL(credentials.tokenUri).origin}`, {
        reason: 'malformed',
        retry: 'later',
      })
    kept.set(credentials, { token: read.output.access_token, until: now + read.output.expires_in * 1000 - EARLY_MS })
    return read.output.access_token
  }

  function failed(status: number, text: string): UpstreamFailure {
    let problem: v.InferOutput<typeof TokenProblem> | undefined
    try {
      problem = v.parse(TokenProblem, readJson(text))
    } catch {
      problem = undefined /* the status says enough */
    }
    const later = status === 429 || status >= 500
    return new UpstreamFailure(
      name,
      `${name} was refused an access token (${status}${problem ? `, ${problem.error}` : ''})${problem?.error_description ? `: ${shortened(problem.error_description)}` : ''}`,
      { reason: status === 429 ? 'rate_limit' : later ? 'server_error' : 'auth', retry: later ? 'later' : 'never' },
    )
  }

  return async (credentials, signal) => {
    signal.throwIfAborted()
    const there = kept.get(credentials)
    if (there && Date.now() < there.until) return there.token
    let running = asking.get(credentials)
    if (!running) {
      running = exchange(credentials).finally(() => asking.delete(credentials))
      asking.set(credentials, running)
    }
    // One caller's abort must not end what others wait for.
    return Promise.race([
      running,
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
    ])
  }
}
